import type { ApiResponse, Api } from './api.ts'
import { canonicalRuleValue } from './guard-rules.ts'
import { isLastDigits, readLastDigits } from './last-digits.ts'
import type { AuditEntry } from './resources.ts'
import { CliError, exitCodes, isOutOfScope, usageError } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

type Resource = { id: string; name?: string | null }

/** Resources of one kind, which commands accept by id, by part of an id and, if they have one, by name. */
type Kind = {
  /** Noun of its commands. */
  noun: string
  /** Noun for people. */
  label: string
  prefix: string
  /** Newest first. */
  list: () => Promise<Resource[]>
  /** Command that lists them, if it needs more than the noun. */
  listCommand?: string
}

/** Newest resources among which a part of an id is looked for, if there is no limit to their number. */
const searchedMax = 1000

/**
 * Finds the id of a project by id, part of an id, or name.
 *
 * @throws CliError NOT_FOUND, or a usage error when several projects match
 */
export const findProject = (api: Api, idOrName: string) =>
  find(idOrName, { noun: 'project', label: 'project', prefix: 'prj', list: () => listProjects(api) })

/** Lists all projects of the developer. */
export const listProjects = (api: Api) =>
  readPages((query) => api.asDeveloper('GET', '/v1/projects', { query }))

/** Finds the id of an application by id, part of an id, or name. @throws as findProject does */
export const findApplication = (api: Api, idOrName: string) =>
  find(idOrName, { noun: 'app', label: 'application', prefix: 'app', list: () => listApplications(api) })

/** Lists all applications of the developer, or of one project. */
export const listApplications = (api: Api, projectId?: string) =>
  readPages((query) => api.asDeveloper('GET', '/v1/applications', { query: { ...query, projectId } }))

/** Names of resources by their ids. */
export type Names = ReadonlyMap<string, string>

/** Reads the names of the applications; none for an API token that may only read codes: ids take their place. */
export async function readApplicationNames(api: Api): Promise<Names> {
  const applications = await listApplications(api).catch((error: unknown) => {
    if (isOutOfScope(error)) return []
    throw error
  })
  return new Map(applications.map(({ id, name }) => [id, name]))
}

/** Reads a name to show next to an id; undefined if it cannot be read, for example by an API token without the scope. */
export const readName = (response: Promise<ApiResponse<{ name: string }>>): Promise<string | undefined> =>
  response.then(
    ({ data }) => data.name,
    (error: unknown) => {
      if (error instanceof CliError) return undefined
      throw error
    },
  )

/** Reads the name of an application to show next to its id. */
export const readApplicationName = (api: Api, id: string) =>
  readName(api.asDeveloper('GET', '/v1/applications/:id', { params: { id } }))

/** Finds the id of an API token by id, part of an id, or name. @throws as findProject does */
export const findToken = (api: Api, idOrName: string) =>
  find(idOrName, { noun: 'token', label: 'API token', prefix: 'tok', list: () => listTokens(api) })

/** Lists all API tokens of the developer. */
export const listTokens = (api: Api) => readPages((query) => api.asDeveloper('GET', '/v1/tokens', { query }))

/** Finds the id of a guard rule by id, part of an id, or value in any spelling. @throws as findProject does */
export async function findGuardRule(api: Api, idOrValue: string): Promise<string> {
  const wanted = canonicalRuleValue(idOrValue)
  return await find(idOrValue, {
    noun: 'guard',
    label: 'guard rule',
    prefix: 'rul',
    list: async () =>
      (await listGuardRules(api)).map(({ id, value }) => ({
        id,
        name: canonicalRuleValue(value) === wanted ? idOrValue : null,
      })),
    listCommand: 'otpd guard rules',
  })
}

/** Lists all guard rules of the developer. */
export const listGuardRules = (api: Api) =>
  readPages((query) => api.asDeveloper('GET', '/v1/guard/rules', { query }))

/**
 * Finds the id of a webhook endpoint by id, part of an id, URL, or its application. Without a text there must be one only.
 *
 * @throws as findProject does
 */
export async function findWebhook(api: Api, text?: string): Promise<string> {
  if (text !== undefined && isFullId(text, 'whk')) return text
  const endpoints = await listWebhooks(api)
  const [sole, ...others] = endpoints
  if (text === undefined && sole !== undefined && others.length === 0) return sole.id
  if (text === undefined && sole !== undefined)
    throw usageError(
      `You have ${endpoints.length} endpoints; name one by id, URL or application.`,
      ...endpoints.slice(0, 10).map(({ id, url }) => `${id}  ${url}`),
    )
  if (text === undefined)
    throw new CliError(exitCodes.notFound, 'NOT_FOUND', 'You have no webhook endpoint.', {
      hints: ['Create one with: otpd webhook create --app APP --url URL --events TYPES'],
    })
  const isUrl = text.includes('://')
  const apps = isUrl ? [] : (await listApplications(api)).filter(({ id, name }) => [id, name].includes(text))
  const isOfApp = (appId: string) => apps.some(({ id }) => id === appId)
  const named = endpoints.map(({ id, url, appId }) => ({
    id,
    name: isUrl ? url : isOfApp(appId) ? text : null,
  }))
  return await find(text, { noun: 'webhook', label: 'webhook', prefix: 'whk', list: async () => named })
}

/** Lists all webhook endpoints of the developer. */
export const listWebhooks = (api: Api) =>
  readPages((query) => api.asDeveloper('GET', '/v1/webhooks', { query }))

/** Finds the id of one of the newest OTP requests by id or part of an id. @throws as findProject does */
export const findOtpRequest = (api: Api, id: string) =>
  find(id, { noun: 'otp', label: 'code', prefix: 'otp', list: () => listOtpRequests(api) })

/** Lists the newest OTP requests of the developer. */
export const listOtpRequests = (api: Api, itemsMax = searchedMax) =>
  readPages((query) => api.asDeveloper('GET', '/v1/otp', { query }), { itemsMax })

/** Finds the id of one of the newest deliveries of an endpoint by id or part of an id. @throws as findProject does */
export const findDelivery = (api: Api, webhookId: string, id: string) =>
  find(id, {
    noun: 'webhook',
    label: 'delivery',
    prefix: 'dlv',
    list: () => listDeliveries(api, webhookId),
    listCommand: `otpd webhook deliveries ${webhookId}`,
  })

/** Lists the newest deliveries of an endpoint. */
const listDeliveries = (api: Api, webhookId: string) =>
  readPages(
    (query) => api.asDeveloper('GET', '/v1/webhooks/:id/deliveries', { params: { id: webhookId }, query }),
    { itemsMax: searchedMax },
  )

/** Lists the newest audit entries that match. */
export const listAudit = (
  api: Api,
  filter: { action?: AuditEntry['action']; targetId?: string },
  itemsMax: number,
) =>
  readPages((query) => api.asDeveloper('GET', '/v1/audit', { query: { ...query, ...filter } }), { itemsMax })

/**
 * Returns the phone number that is named by its last digits or by the id of a user, and any other text as it is. Last
 * digits are looked for in the newest users and codes: people who ask for help often never verified a code.
 *
 * @param country of a national number, which the server reads
 * @throws usage error when several numbers match; NOT_FOUND when none does
 */
export async function findPhone(api: Api, phoneOrId: string, country?: string): Promise<string> {
  if (country === undefined && isLastDigits(phoneOrId)) return await findPhoneByLastDigits(api, phoneOrId)
  if (!phoneOrId.startsWith('idn_')) return phoneOrId
  const users = await listUsers(api)
  const id = await find(phoneOrId, { noun: 'user', label: 'user', prefix: 'idn', list: async () => users })
  return users.find((user) => user.id === id)?.phone ?? phoneOrId
}

async function findPhoneByLastDigits(api: Api, text: string): Promise<string> {
  const digits = readLastDigits(text)
  const query = { phone: text, limit: '200' }
  const [users, requests] = await Promise.all([
    api.asDeveloper('GET', '/v1/users', { query }),
    api.asDeveloper('GET', '/v1/otp', { query }),
  ])
  const all = [...users.data, ...requests.data].map(({ phone }) => phone)
  const [match, ...others] = new Set(all.filter((phone) => phone.startsWith('+') && phone.endsWith(digits)))
  if (match === undefined)
    throw new CliError(exitCodes.notFound, 'NOT_FOUND', `No recent number ends with ${digits}.`, {
      hints: ['Older ones are found by the whole number, like +14155550100, or with --country.'],
    })
  if (others.length === 0) return match
  throw usageError(
    `${others.length + 1} numbers end with ${digits}; use one of them.`,
    ...[match, ...others].slice(0, 10).map(printable),
  )
}

const listUsers = (api: Api) =>
  readPages((query) => api.asDeveloper('GET', '/v1/users', { query }), { itemsMax: searchedMax })

/** Whether the text is a complete id of this kind. */
export const isFullId = (text: string, prefix: string) => new RegExp(`^${prefix}_[0-9a-z]{26}$`).test(text)

/**
 * Makes a test for ids by a part of them: the beginning with its prefix (`otp_01m8`), the end (`cvvy`), or both as
 * tables shorten them (`otp_01m8…cvvy`). Null if the text cannot be part of an id.
 */
function partOfId(text: string, prefix: string): ((id: string) => boolean) | null {
  const [, start, end] = new RegExp(`^(${prefix}_[0-9a-z]*)(?:…|\\.\\.\\.)([0-9a-z]+)$`).exec(text) ?? []
  if (start !== undefined && end !== undefined) return (id) => id.startsWith(start) && id.endsWith(end)
  if (new RegExp(`^${prefix}_[0-9a-z]+$`).test(text)) return (id) => id.startsWith(text)
  return /^[0-9a-z]{4,26}$/.test(text) ? (id) => id.endsWith(text) : null
}

async function find(text: string, { noun, label, prefix, list, listCommand }: Kind): Promise<string> {
  const listHint = `List them with: ${listCommand ?? `otpd ${noun} list`}`
  // The call that follows reports a missing id; checking here would cost every script a round trip.
  if (isFullId(text, prefix)) return text
  if (text === '') throw usageError(`The ${label} is empty.`, listHint)
  const resources = await list()
  const named = resources.filter(({ name }) => name === text)
  const isMatch = partOfId(text, prefix)
  const matches = named.length > 0 || isMatch === null ? named : resources.filter(({ id }) => isMatch(id))
  const [match, ...others] = matches
  if (match === undefined)
    throw new CliError(exitCodes.notFound, 'NOT_FOUND', `You have no ${label} ${printable(text)}.`, {
      hints: [listHint],
    })
  if (others.length === 0) return match.id
  throw usageError(
    named.length > 0
      ? `${matches.length} of your ${label}s are named ${printable(text)}; use one of these ids instead.`
      : `${matches.length} ids match ${printable(text)}; use more of one of them.`,
    ...matches.slice(0, 10).map(({ id }) => id),
  )
}

/** Reads a list page by page: to its end, up to a number of items, or up to the first item that is not wanted. */
export async function readPages<T>(
  loadPage: (query: { limit: string; cursor?: string }) => Promise<ApiResponse<T[]>>,
  {
    cursor,
    itemsMax = Infinity,
    isWanted = () => true,
  }: { cursor?: string | undefined; itemsMax?: number; isWanted?: (item: T) => boolean } = {},
): Promise<T[]> {
  const items: T[] = []
  let next: string | null | undefined = cursor
  do {
    const page: ApiResponse<T[]> = await loadPage({
      limit: '200',
      ...(typeof next === 'string' && { cursor: next }),
    })
    const wanted = page.data.filter(isWanted)
    items.push(...wanted)
    next = wanted.length < page.data.length ? null : page.nextCursor
  } while (next !== null && items.length < itemsMax)
  return items.slice(0, itemsMax)
}
