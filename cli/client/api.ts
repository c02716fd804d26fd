import { exitCodes } from '../terminal/errors.ts'
import type { HttpResponse, SendHttp } from '../session/http.ts'
import { foreignResponseError, responseError } from '../session/response-error.ts'
import { isRecord } from '../../src/shared/json.ts'
import { buildPath, type Call, type ResponseData, type ExistingPath, type Method } from './routes.ts'
import type { ServerChoice } from '../session/server-choice.ts'
import { tokenVariable, type Token, type Tokens } from '../session/tokens.ts'

/** A successful response: its data, and the raw body for --json. */
export type ApiResponse<T> = { data: T; nextCursor: string | null; body: string }

/** An unparsed response. */
export type RawResponse = Pick<HttpResponse, 'status' | 'headers' | 'body'>

/** Credentials of one application, as its backend sends them. */
export type AppCredentials = {
  clientId: string
  clientSecret: string
  apiKey: string
  /** File or environment that they were found in, for error messages. */
  source: string
}

export type Api = ReturnType<typeof createApi>

/**
 * Makes the HTTP API client of the commands: returns data, or throws a CliError with the matching exit code.
 *
 * @param waitForLimit waits that many seconds when a further page of a list is refused by a rate limit, which then is
 *   requested again; without it the refusal is thrown
 */
export function createApi(
  server: ServerChoice,
  send: SendHttp,
  tokens: Tokens,
  waitForLimit?: (seconds: number) => Promise<void>,
) {
  async function sendAsDeveloper(method: string, path: string, content: Content, token: Token | null) {
    const sendWith = (one: Token | null) =>
      send({ method, path, ...content, headers: { ...content.headers, ...bearer(one) } })
    const response = await sendWith(token)
    if (response.status !== 401 || token === null) return { response, token }
    // Rejected before anything was done, so a retry is safe: our clock was behind, or the signing key was rotated.
    const freshToken = await tokens.replace(token)
    if (freshToken === null) return { response, token }
    return { response: await sendWith(freshToken), token: freshToken }
  }

  return {
    server,
    /**
     * Calls the API as the logged-in developer.
     *
     * @throws CliError NOT_LOGGED_IN before any call when there is no login
     */
    async asDeveloper<M extends Method, Path extends string>(
      method: M,
      path: Path & ExistingPath<M, Path>,
      call: Call<M, Path> = {},
    ): Promise<ApiResponse<ResponseData<M, Path>>> {
      const wait = isFurtherPage(call) ? waitForLimit : undefined
      for (;;) {
        const currentToken = await tokens.current()
        if (currentToken === null) throw tokens.notLoggedInError()
        const content = jsonContent(call)
        const { response, token } = await sendAsDeveloper(
          method,
          buildPath(path, call),
          content,
          currentToken,
        )
        if (wait && response.status === 429 && response.retryAfterSeconds !== null) {
          await wait(response.retryAfterSeconds)
          continue
        }
        return toApiResponse(server, response, [
          ...tokenHints(server, response, token),
          ...notFoundHints(server, response, { method, path }),
        ])
      }
    },
    /** Calls the API as an application, with its three credential headers. */
    async asApplication<M extends Method, Path extends string>(
      method: M,
      path: Path & ExistingPath<M, Path>,
      credentials: AppCredentials,
      call: Call<M, Path> = {},
    ): Promise<ApiResponse<ResponseData<M, Path>>> {
      const content = jsonContent(call)
      const headers = { ...content.headers, ...applicationHeaders(credentials) }
      const response = await send({ method, path: buildPath(path, call), ...content, headers })
      const hints =
        response.status === 401
          ? [
              `The application's credentials came from ${credentials.source}.`,
              'Replace them with: otpd app rotate APP client-secret, otpd app rotate APP api-key',
            ]
          : []
      return toApiResponse(server, response, [...hints, ...notFoundHints(server, response, { method, path })])
    },
    /**
     * Makes any call, with the body unchanged and with a token if there is one.
     *
     * @throws CliError when the status is 400 or more
     */
    async raw({
      method,
      path,
      body,
    }: {
      method: string
      path: string
      body: string | undefined
    }): Promise<RawResponse> {
      const content = body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }
      const { response, token } = await sendAsDeveloper(method, path, content, await tokens.current())
      if (response.status >= 400)
        throw responseError(server, response, [
          ...(errorReason(response) === 'MISSING_CREDENTIAL'
            ? applicationHints(path)
            : tokenHints(server, response, token)),
          ...notFoundHints(server, response, { method, path }),
        ])
      return response
    },
  }
}

/** Only pages after the first have a cursor. Giving up there would lose the pages before. */
const isFurtherPage = ({ query }: { query?: object }) =>
  query !== undefined && 'cursor' in query && query.cursor !== undefined

type Content = { body?: string; headers?: Record<string, string> }

const jsonContent = ({ body, headers }: { body?: unknown; headers?: Record<string, string> }): Content =>
  body === undefined
    ? { ...(headers && { headers }) }
    : { body: JSON.stringify(body), headers: { ...headers, 'content-type': 'application/json' } }

const bearer = (token: Token | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token.value}` }

const applicationHeaders = ({ clientId, clientSecret, apiKey }: AppCredentials) => ({
  'x-client-id': clientId,
  'x-client-secret': clientSecret,
  'x-api-key': apiKey,
})

/** Says where the token came from, if another token could have succeeded: a limit applies to every token. */
export function tokenHints(server: ServerChoice, response: HttpResponse, token: Token | null) {
  if (response.status !== 401 && response.status !== 403) return []
  if (responseError(server, response).exitCode === exitCodes.refused) return []
  const login = `Log in with: otpd login --server ${server.url}`
  if (token === null) return [login]
  const sourceHint = `The token came from ${token.source}.`
  if (response.status === 403) return [sourceHint]
  return [
    sourceHint,
    token.source === tokenVariable ? 'Set a new OTPD_TOKEN, or unset it and use: otpd login' : login,
  ]
}

const errorReason = ({ json }: HttpResponse) =>
  isRecord(json) && isRecord(json.error) ? json.error.reason : undefined

/** Says who may make a call that no login can make. */
function applicationHints(path: string) {
  const [, command] = /^\/v1\/otp\/(send|resend|verify|cancel|deliver)$/.exec(path) ?? []
  return [
    'Only an application may make this call, with its credentials; otpd api uses your login.',
    ...(command === undefined ? [] : [`Make it with: otpd otp ${command} --env-file FILE`]),
  ]
}

const commandNouns: Partial<Record<string, string>> = {
  projects: 'project',
  applications: 'app',
  otp: 'otp',
  webhooks: 'webhook',
  tokens: 'token',
  // Their paths have no ids; what they do not find is the application of a filter.
  analytics: 'app',
  logs: 'app',
}

/** Suggests a list to look at after a 404. */
function notFoundHints(
  server: ServerChoice,
  response: HttpResponse,
  { method, path }: { method: string; path: string },
) {
  if (response.status !== 404) return []
  if (errorReason(response) === 'ROUTE_NOT_FOUND')
    return [
      ...(path.startsWith('/v1/') ? [] : [`Paths of the API start with /v1, like /v1${path}.`]),
      `See the API documentation: ${server.url}/v1/docs`,
    ]
  if (method === 'GET' && path.startsWith('/v1/users/'))
    return ['Look for its codes with: otpd otp list --phone PHONE']
  // Sessions of the ready page have no list.
  if (path.startsWith('/v1/otp/sessions/')) return []
  if (/^\/v1\/applications\/[^/]+\/templates\/./.test(path))
    return ['List them with: otpd template list --app APP']
  const [, , resource = '', id] = path.replace(/\?.*/, '').split('/')
  // Without an id in the path, the query or the body names what is missing: the parent.
  const parent = resource === 'applications' ? 'project' : 'app'
  const noun = id === undefined ? parent : commandNouns[resource]
  return noun === undefined ? [] : [`List them with: otpd ${noun} list`]
}

function toApiResponse<T>(server: ServerChoice, response: HttpResponse, hints: string[]): ApiResponse<T> {
  if (response.status >= 400) throw responseError(server, response, hints)
  if (!isRecord(response.json) || typeof response.json.data !== 'object' || response.json.data === null)
    throw foreignResponseError(server, response.status)
  const { pagination } = response.json
  const nextCursor =
    isRecord(pagination) && typeof pagination.nextCursor === 'string' ? pagination.nextCursor : null
  // A server of this version sends what its types say; `explainUnexpected` is for other versions.
  const { data }: { data: T } = JSON.parse(response.body)
  return { data, nextCursor, body: response.body }
}
