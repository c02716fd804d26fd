import { CliError, exitCodes } from '../terminal/errors.ts'
import type { Profile } from './profile.ts'
import type { NamedServer } from './server-choice.ts'
import { printable } from '../terminal/text.ts'

/** @throws CliError NOT_FOUND */
export function requireContext({ contexts }: Profile, name: string): NamedServer {
  const url = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (url !== undefined) return { name, url }
  throw new CliError(exitCodes.notFound, 'NOT_FOUND', `There is no context ${printable(name)}.`, {
    hints: ['See them with: otpd context list', `Add it with: otpd context add ${printable(name)} URL`],
  })
}

/** What commands talk to that are told no server, and its name where it has one. */
export function currentServer({ current, contexts }: Profile): { url: string; name?: string } | null {
  if (current === null) return null
  const name = Object.keys(contexts).find((candidate) => contexts[candidate] === current)
  return { url: current, ...(name !== undefined && { name }) }
}
