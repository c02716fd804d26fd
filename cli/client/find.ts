import type { ApiResponse, Api } from './api.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

type NamedResource = { id: string; name: string }

/**
 * Finds the id of a project by id or name.
 *
 * @throws CliError NOT_FOUND, or a usage error when several projects have the name
 */
export const findProject = (api: Api, idOrName: string) =>
  findByIdOrName('project', 'prj', idOrName, () => listProjects(api))

/** Lists all projects of the developer. */
export const listProjects = (api: Api) =>
  loadAllPages((query) => api.asDeveloper('GET', '/v1/projects', { query }))

/**
 * Finds the id of an application by id or name.
 *
 * @throws CliError NOT_FOUND, or a usage error when several applications have the name
 */
export const findApplication = (api: Api, idOrName: string) =>
  findByIdOrName('app', 'app', idOrName, () => listApplications(api))

/** Lists all applications of the developer. */
export const listApplications = (api: Api) =>
  loadAllPages((query) => api.asDeveloper('GET', '/v1/applications', { query }))

/** Finds the id of an API token by id or name. @throws CliError NOT_FOUND */
export const findToken = (api: Api, idOrName: string) =>
  findByIdOrName('token', 'tok', idOrName, () => listTokens(api))

/** Lists all API tokens of the developer. */
export const listTokens = (api: Api) =>
  loadAllPages((query) => api.asDeveloper('GET', '/v1/tokens', { query }))

async function findByIdOrName(
  noun: string,
  prefix: string,
  idOrName: string,
  list: () => Promise<NamedResource[]>,
) {
  // The call that follows reports a missing id; checking here would cost every script a round trip.
  if (new RegExp(`^${prefix}_[0-9a-z]{26}$`).test(idOrName)) return idOrName
  const matches = (await list()).filter((candidate) => candidate.name === idOrName)
  const [match, ...others] = matches
  if (match === undefined)
    throw new CliError(exitCodes.notFound, 'NOT_FOUND', `You have no ${noun} named ${printable(idOrName)}.`, {
      hints: [`List them with: otpd ${noun} list`],
    })
  if (others.length > 0)
    throw usageError(
      `${matches.length} of your ${noun}s are named ${printable(idOrName)}; use one of these ids instead.`,
      ...matches.map(({ id }) => id),
    )
  return match.id
}

/** Loads every page of a list. */
async function loadAllPages<T>(
  loadPage: (query: { limit: string; cursor?: string }) => Promise<ApiResponse<T[]>>,
) {
  const items: T[] = []
  let cursor: string | null = null
  do {
    const response: ApiResponse<T[]> = await loadPage({ limit: '200', ...(cursor !== null && { cursor }) })
    items.push(...response.data)
    cursor = response.nextCursor
  } while (cursor !== null)
  return items
}
