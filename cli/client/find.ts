import type { Answer, Api } from './api.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

type Named = { id: string; name: string }

/** A project by its id or, where that is unambiguous, by its name. */
export const findProject = (api: Api, idOrName: string) =>
  find('project', 'prj', idOrName, () => listProjects(api))

export const listProjects = (api: Api) =>
  allPages((query) => api.asDeveloper('GET', '/v1/projects', { query }))

/** An application by its id or, where that is unambiguous, by its name. */
export const findApplication = (api: Api, idOrName: string) =>
  find('app', 'app', idOrName, () => listApplications(api))

export const listApplications = (api: Api) =>
  allPages((query) => api.asDeveloper('GET', '/v1/applications', { query }))

async function find(noun: string, prefix: string, idOrName: string, list: () => Promise<Named[]>) {
  // The server says whether it exists: asking twice would cost every script a round trip.
  if (new RegExp(`^${prefix}_[0-9a-z]{26}$`).test(idOrName)) return idOrName
  const matches = (await list()).filter((one) => one.name === idOrName)
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
  return match.id
}

/** Every page of a list. */
async function allPages<T>(page: (query: { limit: string; cursor?: string }) => Promise<Answer<T[]>>) {
  const all: T[] = []
  let cursor: string | null = null
  do {
    const found: Answer<T[]> = await page({ limit: '200', ...(cursor !== null && { cursor }) })
    all.push(...found.data)
    cursor = found.nextCursor
  } while (cursor !== null)
  return all
}
