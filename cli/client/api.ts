import type { AppCredentials } from './credentials.ts'
import { exitCodes } from '../terminal/errors.ts'
import type { HttpReply, SendHttp } from './http.ts'
import { replyError } from './reply-error.ts'
import { isRecord } from '../session/profile.ts'
import { pathOf, type Call, type Data, type Known, type Method } from './routes.ts'
import type { ServerChoice } from '../session/server-choice.ts'
import { tokenVariable, type Token, type Tokens } from '../session/tokens.ts'

/** An answer of the API: what it says, and the body as it came, which is what --json prints. */
export type Answer<T> = { data: T; nextCursor: string | null; body: string }

export type Api = ReturnType<typeof createApi>

/** The HTTP API as the commands see it: success is data, anything else a CliError with the exit code it stands for. */
export function createApi(server: ServerChoice, send: SendHttp, tokens: Tokens) {
  async function sendAsConsole(method: string, path: string, content: Content, token: Token | null) {
    const reply = await send({ method, path, ...content, headers: { ...content.headers, ...bearer(token) } })
    if (reply.status !== 401 || token === null) return { reply, token }
    // Refused before anything was done, so the call may be repeated: our clock was behind, or the keys were rotated.
    const fresh = await tokens.replace(token)
    if (fresh === null) return { reply, token }
    const second = await send({ method, path, ...content, headers: { ...content.headers, ...bearer(fresh) } })
    return { reply: second, token: fresh }
  }

  return {
    server,
    /** A call as the developer who is logged in. Throws NOT_LOGGED_IN before asking the server where nobody is. */
    async asDeveloper<M extends Method, Path extends string>(
      method: M,
      path: Path & Known<M, Path>,
      call: Call<M, Path> = {},
    ): Promise<Answer<Data<M, Path>>> {
      const known = await tokens.current()
      if (known === null) throw tokens.notLoggedIn()
      const { reply, token } = await sendAsConsole(method, pathOf(path, call), contentOf(call.body), known)
      return answerOf(server, reply, [
        ...tokenHints(server, reply, token),
        ...missingHints(server, reply, path),
      ])
    },
    /** A call as an application, with its three headers. */
    async asApplication<M extends Method, Path extends string>(
      method: M,
      path: Path & Known<M, Path>,
      credentials: AppCredentials,
      call: Call<M, Path> = {},
    ): Promise<Answer<Data<M, Path>>> {
      const content = contentOf(call.body)
      const headers = { ...content.headers, ...applicationHeaders(credentials) }
      const reply = await send({ method, path: pathOf(path, call), ...content, headers })
      const hints =
        reply.status === 401
          ? [
              `The application's credentials came from ${credentials.from}.`,
              'Make new ones with: otpd rotate APP secret, otpd rotate APP api',
            ]
          : []
      return answerOf(server, reply, [...hints, ...missingHints(server, reply, path)])
    },
    /** Any call, with the body as it is and a token where there is one; throws where the status is 400 or more. */
    async raw(method: string, path: string, body: string | undefined): Promise<string> {
      const content = body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }
      const { reply, token } = await sendAsConsole(method, path, content, await tokens.current())
      if (reply.status >= 400)
        throw replyError(server, reply, [
          ...tokenHints(server, reply, token),
          ...missingHints(server, reply, path),
        ])
      return reply.body
    },
  }
}

type Content = { body?: string; headers?: Record<string, string> }

const contentOf = (body: unknown): Content =>
  body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }

const bearer = (token: Token | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token.value}` }

const applicationHeaders = ({ clientId, clientSecret, apiKey }: AppCredentials) => ({
  'x-client-id': clientId,
  'x-client-secret': clientSecret,
  'x-api-key': apiKey,
})

/** Where the token came from, where another one would have been answered otherwise: a limit is nobody's token's fault. */
function tokenHints(server: ServerChoice, reply: HttpReply, token: Token | null) {
  if (reply.status !== 401 && reply.status !== 403) return []
  if (replyError(server, reply).exitCode === exitCodes.refused) return []
  const login = `Log in with: otpd login --server ${server.url}`
  if (token === null) return [login]
  const from = `The token came from ${token.from}.`
  if (reply.status === 403) return [from]
  return [from, token.from === tokenVariable ? 'Give it a new one, or unset it and use: otpd login' : login]
}

const nouns: Partial<Record<string, string>> = {
  projects: 'project',
  applications: 'app',
  otp: 'otp',
  webhooks: 'webhook',
  users: 'user',
}

/** Where to look for what was not there. */
function missingHints(server: ServerChoice, { status, json }: HttpReply, path: string) {
  if (status !== 404) return []
  const isRoute = isRecord(json) && isRecord(json.error) && json.error.reason === 'ROUTE_NOT_FOUND'
  if (isRoute) return [`See what there is at: ${server.url}/v1/docs`]
  const noun = nouns[path.split('/')[2] ?? '']
  return noun === undefined ? [] : [`See what there is with: otpd ${noun} list`]
}

function answerOf<T>(server: ServerChoice, reply: HttpReply, hints: string[] = []): Answer<T> {
  if (reply.status >= 400) throw replyError(server, reply, hints)
  if (!isRecord(reply.json) || !('data' in reply.json)) throw replyError(server, { ...reply, json: null })
  const { pagination } = reply.json
  const nextCursor =
    isRecord(pagination) && typeof pagination.nextCursor === 'string' ? pagination.nextCursor : null
  // The server is of the same version as this client and its types are the contract, so they are not checked again.
  const { data }: { data: T } = JSON.parse(reply.body)
  return { data, nextCursor, body: reply.body }
}
