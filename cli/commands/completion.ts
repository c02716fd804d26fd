import { Argument } from 'commander'
import type { CliCommand } from './command.ts'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Api } from '../client/api.ts'
import {
  listApplications,
  listGuardRules,
  listOtpRequests,
  listProjects,
  listTokens,
  listWebhooks,
} from '../client/find.ts'
import { completionScript, shells, type Shell } from '../completion/script.ts'
import { completionKinds, type CompletionKind } from '../completion/values.ts'
import { createContext, type Context } from '../context.ts'
import { withDataDir } from '../host/commands.ts'
import { loadServerConfig } from '../host/config.ts'
import { credentialsPath, readStoredLogins } from '../session/credentials-file.ts'
import { readGuides } from './docs.ts'
import { usageError } from '../terminal/errors.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'

const whereToPut = `
Where to put it:
  bash  source <(otpd completion bash)    in ~/.bashrc
  zsh   source <(otpd completion zsh)     in ~/.zshrc, after compinit
  fish  otpd completion fish > ~/.config/fish/completions/otpd.fish`

/** How long answers of the server are used again, in milliseconds: a person presses tab several times. */
const cacheMs = 10_000
/** A shell waits for the answer. */
const timeout = '2s'
const itemsMax = 200

/** Registers the command that completion scripts call for the names of resources. It never fails. */
export function addCompleteCommand(program: CliCommand) {
  program
    .command('__complete', { hidden: true })
    .addArgument(new Argument('<kind>', completionKinds.join(', ')).choices(completionKinds))
    .description('names for completion')
    .examples('otpd __complete app')
    .run(async ({ io, flags, output }, kind: CompletionKind) => {
      const read = localKinds[kind] ?? readWords
      const words = await read(createContext(io, { ...flags, timeout }, output), kind).catch(() => [])
      if (words.length > 0) io.writeOut(`${words.join('\n')}\n`)
    })
}

/** Names that this machine knows, by their kind. */
const localKinds: Partial<Record<CompletionKind, (context: Context) => Promise<string[]>>> = {
  country: async () => (await import('libphonenumber-js/max/es6')).getCountries().toSorted(),
  context: async ({ io }) => Object.keys(readStoredLogins(credentialsPath(io)).contexts),
  guide: async () => (await readGuides()).map(({ name }) => name),
  provider: async ({ io }) =>
    (await loadServerConfig(io, {})).config?.delivery.providers.map(({ name }) => name) ?? [],
  // They may be in a bucket.
  backup: (context) =>
    Promise.race([listBackups(context), context.io.sleep(context.timeoutMs).then(() => [])]),
}

async function listBackups(context: Context): Promise<string[]> {
  const cwd = context.io.workingDirectory
  const { backups } = await withDataDir(context, {}, (host, needs) =>
    host.listBackups(needs, { from: undefined, cwd }),
  )
  return backups.length === 0 ? [] : ['latest', ...backups.map(({ name }) => name)]
}

/** Reads names from the cache, or asks the server. */
async function readWords(context: Context, kind: CompletionKind): Promise<string[]> {
  const { io } = context
  const { api, server } = context.connect()
  const path = join(dirname(credentialsPath(io)), `completion-${kind}.json`)
  const cached = parseJson(
    await Bun.file(path)
      .text()
      .catch(() => ''),
  )
  if (isRecord(cached) && cached.server === server.url && Math.abs(io.now() - Number(cached.at)) < cacheMs)
    return Array.isArray(cached.words) ? cached.words.map(String) : []
  const words = (await listNames(api, kind)).filter((word) => /^[\w.@+:/?=%-]+$/.test(word))
  const text = JSON.stringify({ server: server.url, at: io.now(), words })
  // It is missing without a login, as with an API token in a variable.
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, text, { mode: 0o600 })
  return words
}

/** Lists names; ids for resources without a name, with one that others have too, or with one that a shell would split. */
async function listNames(api: Api, kind: CompletionKind): Promise<string[]> {
  const names = (resources: { id: string; name: string }[]) =>
    resources.map(({ id, name }) => {
      const isUnique = resources.filter((other) => other.name === name).length === 1
      return isUnique && /^[\w.@+:/-]+$/.test(name) ? name : id
    })
  switch (kind) {
    case 'app':
      return names(await listApplications(api))
    case 'project':
      return names(await listProjects(api))
    case 'token':
      return names(await listTokens(api))
    case 'rule':
      return names((await listGuardRules(api)).map(({ id, value }) => ({ id, name: value })))
    case 'webhook':
      return (await listWebhooks(api)).flatMap(({ id, url }) => [id, url])
    default:
      return (await listOtpRequests(api, itemsMax)).map(({ id }) => id)
  }
}

/** Registers the completion command. */
export function addCompletionCommand(program: CliCommand) {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('[shell]', 'bash, zsh or fish (default: your shell, by SHELL)').choices(shells))
    .examples('otpd completion bash > otpd.bash', 'otpd completion fish')
    .addHelpText('after', whereToPut)
    .run(async ({ io, output }, named: Shell | undefined) => {
      const shell = named ?? shells.find((one) => one === basename(io.env.SHELL ?? ''))
      if (shell === undefined)
        throw usageError(
          `Name the shell: ${shells.join(', ')}.`,
          'For example, in ~/.bashrc: source <(otpd completion bash)',
        )
      if (named === undefined)
        output.note(`For ${shell}, which SHELL names. Where to put it: otpd completion --help`)
      const script = completionScript(program, shell)
      output.printData({ shell, script }, () => script)
    })
}
