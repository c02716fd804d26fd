import type { Api } from './api.ts'
import { CliError, exitCodes, usageError } from './errors.ts'
import type { Project } from './resources.ts'
import { printable } from './text.ts'

type Named = { id: string; name: string }

/** A project by its id or, where that is unambiguous, by its name. */
export const findProject = (api: Api, idOrName: string) =>
  find<Project>(api, { idOrName, prefix: 'prj', path: '/v1/projects', noun: 'project' })

type Search = { idOrName: string; prefix: string; path: string; noun: string }

async function find<T extends Named>(api: Api, { idOrName, prefix, path, noun }: Search): Promise<Named> {
  // The server says whether it exists: asking twice would cost every script a round trip.
  if (new RegExp(`^${prefix}_[0-9a-z]{26}$`).test(idOrName)) return { id: idOrName, name: idOrName }
  const matches = (await listAll<T>(api, path)).filter((one) => one.name === idOrName)
  const [match, ...others] = matches
  if (match === undefined)
    throw new CliError(
      exitCodes.notFound,
      'NOT_FOUND',
      `No ${noun} of yours is called ${printable(idOrName)}.`,
      {
        hints: [`See them with: otpd ${noun} list`],
      },
    )
  if (others.length > 0)
    throw usageError(
      `${matches.length} of your ${noun}s are called ${printable(idOrName)}; name one by its id.`,
      ...matches.map(({ id }) => id),
    )
  return match
}

/** Every page of a list. */
export async function listAll<T>(api: Api, path: string): Promise<T[]> {
  const all: T[] = []
  let cursor: string | undefined
  do {
    const page = await api.asDeveloper<T[]>('GET', path, { query: { limit: '200', cursor } })
    all.push(...page.data)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return all
}
