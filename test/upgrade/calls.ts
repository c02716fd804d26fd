import { callApi, type ApiResponse } from './http.ts'
import { listAt, textAt, valueAt, type Json } from './json.ts'

/** A GET of the API. `as` names an account or an application; `anonymous` calls without credentials. */
export type ReadCall = { as: string; path: string }

export type RecordedResponse = ReadCall & ApiResponse

export type Caller = (call: ReadCall) => Promise<ApiResponse>

/** Returns a function that calls the API with the credentials of each caller. */
export const createCaller =
  (url: string, headers: Record<string, Record<string, string>>): Caller =>
  ({ as, path }) =>
    callApi(url, path, { headers: headers[as] ?? {} })

/**
 * Routes that the fixture leaves out: the API description and its page, which describe a version and not the data; the
 * stream, which has no end; and those that tell what the server does now.
 */
const leftOut = [
  '/v1/openapi.json',
  '/v1/docs',
  '/v1/logs/stream',
  '/v1/providers',
  '/v1/routes',
  '/v1/guard',
]

/**
 * Lists calls of every GET route, for everything that the developers own.
 *
 * @throws Error if a GET route of the API description is neither listed nor left out
 */
export async function listReadCalls(url: string, caller: Caller, developers: string[]): Promise<ReadCall[]> {
  const calls = await listDataCalls(caller, developers)
  await requireAll(url, calls)
  return calls
}

/** Lists such calls without checking that they are of all routes. */
export async function listDataCalls(caller: Caller, developers: string[]): Promise<ReadCall[]> {
  const calls: ReadCall[] = [
    ...['/v1/health', '/v1/health/ready', '/v1/auth/config', '/v1/projects'].map(anonymously),
    ...['/v1/auth/.well-known/openid-configuration', '/v1/auth/jwks.json'].map(anonymously),
  ]
  for (const as of developers) calls.push(...(await listOwned(as, caller)))
  const foreign = calls.find(({ as, path }) => as === developers[0] && path.startsWith('/v1/projects/prj_'))
  calls.push({ as: developers[1] ?? '', path: foreign?.path ?? '' })
  return calls
}

const anonymously = (path: string): ReadCall => ({ as: 'anonymous', path })

async function listOwned(as: string, caller: Caller): Promise<ReadCall[]> {
  const paths: string[] = ['/v1/developer/me', '/v1/analytics/summary', '/v1/analytics/timeseries?range=90d']
  for (const by of ['application', 'country', 'channel', 'provider'])
    paths.push(`/v1/analytics/breakdown?by=${by}&range=90d`)
  paths.push('/v1/analytics/costs?range=90d', '/v1/analytics/summary?environment=test', '/v1/tokens')
  const read = async (path: string) => {
    paths.push(path)
    return listAt((await caller({ as, path })).body, 'data')
  }
  const idsOf = (rows: Json[]) => rows.map((row) => textAt(row, 'id'))

  for (const id of idsOf(await read('/v1/projects'))) paths.push(`/v1/projects/${id}`)
  const applications = idsOf(await read('/v1/applications'))
  for (const id of applications) paths.push(`/v1/applications/${id}`, `/v1/applications/${id}/webhook-secret`)

  const requests = await read('/v1/otp?limit=200')
  for (const row of distinct(requests, ['status', 'failureReason', 'deliveryStatus'])) {
    paths.push(`/v1/otp/${textAt(row, 'id')}`)
  }
  for (const row of distinct(requests, ['status']).slice(0, 3)) {
    const id = textAt(row, 'id')
    paths.push(`/v1/otp/${id}/events`, `/v1/logs?requestId=${id}`)
    paths.push(`/v1/otp?phone=${encodeURIComponent(textAt(row, 'phone'))}`)
  }
  for (const status of ['pending', 'failed', 'expired']) paths.push(`/v1/otp?status=${status}&limit=2`)
  paths.push('/v1/otp?environment=test&limit=2', '/v1/users?environment=test')
  paths.push(`/v1/otp?appId=${applications[0] ?? ''}&limit=2`, await nextPage(as, '/v1/otp?limit=2', caller))

  for (const row of (await read('/v1/users')).slice(0, 2)) {
    paths.push(`/v1/users/${encodeURIComponent(textAt(row, 'phone'))}`)
  }
  const log = await read('/v1/logs?limit=40')
  paths.push('/v1/inbox?limit=200', '/v1/logs?type=otp.failed,otp.blocked,webhook.disabled')
  paths.push(`/v1/logs?limit=3&after=${textAt(log[0] ?? null, 'id')}`)
  paths.push(await nextPage(as, '/v1/logs?limit=3&order=desc', caller))
  paths.push('/v1/audit?limit=15', await nextPage(as, '/v1/audit?limit=2', caller))
  paths.push('/v1/audit?action=credential.rotated')

  for (const id of idsOf(await read('/v1/webhooks'))) {
    paths.push(`/v1/webhooks/${id}`)
    const deliveries = await read(`/v1/webhooks/${id}/deliveries`)
    for (const row of distinct(deliveries, ['status'])) {
      paths.push(`/v1/webhooks/${id}/deliveries/${textAt(row, 'id')}`)
    }
    paths.push(`/v1/webhooks/${id}/deliveries?status=delivered&limit=2`)
  }
  return paths.filter((path) => path !== '').map((path) => ({ as, path }))
}

/** Keeps one row for each combination of values, so that the fixture stays small. */
function distinct(rows: Json[], fields: string[]): Json[] {
  const byValues = new Map(rows.map((row) => [JSON.stringify(fields.map((name) => valueAt(row, name))), row]))
  return [...byValues.values()]
}

/** Returns the path of the second page, by the first page's cursor. */
export async function nextPage(as: string, path: string, caller: Caller): Promise<string> {
  const cursor = valueAt((await caller({ as, path })).body, 'pagination', 'nextCursor')
  return typeof cursor === 'string' ? `${path}&cursor=${cursor}` : ''
}

async function requireAll(url: string, calls: readonly ReadCall[]): Promise<void> {
  const { body } = await callApi(url, '/v1/openapi.json')
  const paths = valueAt(body, 'paths')
  if (typeof paths !== 'object' || paths === null) throw new Error('The API description has no paths.')
  for (const [path, operations] of Object.entries(paths)) {
    if (valueAt(operations, 'get') === null || leftOut.includes(path)) continue
    const pattern = new RegExp(`^${path.replace(/\/$/, '').replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`)
    if (!calls.some((call) => pattern.test(call.path))) throw new Error(`No call of GET ${path}`)
  }
}
