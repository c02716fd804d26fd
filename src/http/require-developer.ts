import { Elysia } from 'elysia'
import type { Actor } from '../domain/model/audit.ts'
import type { DeveloperService, TokenLogin } from '../domain/accounts/developers.ts'
import type { ApiTokenService } from '../domain/apps/api-tokens.ts'
import type { StreamAccess } from '../domain/log/stream.ts'
import { apiTokenPrefix, includesScope } from '../domain/model/api-token.ts'
import type { Developer } from '../domain/model/developer.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { CallLimits } from '../domain/limits/call-limits.ts'
import type { CallTurns } from './call-turns.ts'
import type { ReadClient, ClientContext } from './client.ts'
import type { ApiTokenScope } from '../shared/api-token-scopes.ts'
import { requiredScope } from './scopes.ts'
import { setRateHeaders } from './rate-headers.ts'

/** A developer, the origin of the request, and the right to log streams, which end with the token. */
type AuthenticatedDeveloper = Actor & StreamAccess

/**
 * Authenticates a developer by the `Authorization` header, and charges the call.
 *
 * @throws UNAUTHENTICATED; FORBIDDEN; UNAVAILABLE; RATE_LIMITED (CONSOLE_RATE)
 */
export type AuthenticateDeveloper = (
  authorization: string | undefined,
  incoming: RoutedRequest,
) => Promise<AuthenticatedDeveloper>

/** A request with the pattern of its route, such as `/v1/projects/:id`. */
type RoutedRequest = ClientContext & { route: string }

/** Verifies a token. @throws UNAUTHENTICATED (TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED); UNAVAILABLE */
type VerifyToken = (token: string | undefined) => Promise<TokenLogin>

/**
 * Plugin that authenticates a developer and adds `developer` to the context. It is a `derive`, which runs before
 * validation; the `resolve` of a macro would run after it.
 */
export const requireDeveloper = (authenticate: AuthenticateDeveloper) =>
  new Elysia({ name: 'require-developer' }).derive(
    { as: 'scoped' },
    async ({ headers, request, server, set, route }) => ({
      developer: await authenticate(headers['authorization'], { request, server, set, route }),
    }),
  )

/**
 * Creates the authentication of developers by bearer token (RFC 6750 §2.1): an ID token, or an API token whose scopes
 * include the route. The developer and the session or token are read from the database for every request, so that
 * ending one takes effect on the next.
 */
export function createDeveloperAuthenticator(needs: {
  verify: VerifyToken
  developers: Pick<DeveloperService, 'resolveLogin' | 'revalidateLogin'>
  apiTokens: Pick<ApiTokenService, 'authenticate'>
  readClient: ReadClient
  callLimits: Pick<CallLimits, 'chargeConsoleCall'>
  callTurns: CallTurns
}): AuthenticateDeveloper {
  const { verify, developers, apiTokens, readClient, callLimits, callTurns } = needs
  /** Charges the call, and waits for its turn. @throws the error of `revalidate` if the login has ended meanwhile */
  async function admit(
    { set, request }: ClientContext,
    developer: Developer,
    revalidate: () => Promise<void>,
    session?: string,
  ): Promise<void> {
    setRateHeaders(set.headers, callLimits.chargeConsoleCall(developer, session))
    if (await callTurns.begin(request, developer.id)) await revalidate()
  }
  return async (authorization, incoming) => {
    const bearer = bearerToken(authorization)
    const { origin } = readClient(incoming)
    if (bearer?.startsWith(apiTokenPrefix)) {
      const { token, developer } = await apiTokens.authenticate(bearer)
      const revalidate = async () => void (await apiTokens.authenticate(bearer))
      await admit(incoming, developer, revalidate)
      requireScope(token.scopes, incoming)
      return {
        ...developer,
        origin: { ...origin, tokenId: token.id },
        tokenExpiresAt: token.expiresAt ?? Infinity,
        revalidate,
      }
    }
    if (bearer === undefined && hasAppCredentials(incoming.request)) throw onlyForDevelopers()
    const login = await verify(bearer)
    const developer = await developers.resolveLogin(login, origin)
    const revalidate = () => developers.revalidateLogin(login)
    const isOnlyForLogins = requiredScope(incoming.request.method, incoming.route) === 'login'
    await admit(incoming, developer, revalidate, isOnlyForLogins ? (login.sessionId ?? '') : undefined)
    return {
      ...developer,
      origin,
      tokenExpiresAt: login.expiresAtMs,
      revalidate,
    }
  }
}

/** Wraps an authentication so that it refuses developers without a second factor, when the server requires one. */
export const requireTotp =
  (
    authenticate: AuthenticateDeveloper,
    totp: { isEnabled(developerId: string): Promise<boolean> },
  ): AuthenticateDeveloper =>
  async (authorization, incoming) => {
    const developer = await authenticate(authorization, incoming)
    if (await totp.isEnabled(developer.id)) return developer
    throw new ServiceError(
      'FORBIDDEN',
      'This server requires a second factor. Enable TOTP for your account first.',
      { reason: 'TOTP_REQUIRED' },
    )
  }

/** @throws FORBIDDEN (SCOPE_MISSING) */
function requireScope(scopes: readonly ApiTokenScope[], { request, route }: RoutedRequest) {
  const scope = requiredScope(request.method, route)
  if (includesScope(scopes, scope)) return
  const message =
    scope === 'login'
      ? 'API tokens may not do this. Log in, and use an ID token.'
      : `This API token lacks the scope ${scope}. Use a token that has it.`
  const metadata = { scope: scope === 'login' ? null : scope }
  throw new ServiceError('FORBIDDEN', message, { reason: 'SCOPE_MISSING', metadata })
}

const hasAppCredentials = ({ headers }: Request) => headers.has('x-client-id') || headers.has('x-api-key')

/** UNAUTHENTICATED for the credentials of an application, which are right and of no use here. */
const onlyForDevelopers = () =>
  new ServiceError(
    'UNAUTHENTICATED',
    'This call takes no credentials of an application. Send an ID token or an API token in the header authorization.',
    { reason: 'TOKEN_MISSING' },
  )

/** Extracts a bearer token. The scheme is case-insensitive (RFC 9110 §11.1). @returns undefined for other schemes */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S.*)$/i.exec(authorization ?? '')?.[1]
}

/**
 * Returns the `WWW-Authenticate` header that every 401 must have (RFC 9110 §11.6.1). For tokens it follows RFC 6750 §3,
 * without an error code if no token was sent. For applications it names otpd's own scheme and never the cause.
 *
 * @returns undefined for errors other than UNAUTHENTICATED and a missing scope
 */
export function wwwAuthenticateFor({ code, reason }: ServiceError): string | undefined {
  if (reason === 'SCOPE_MISSING') return 'Bearer realm="otpd", error="insufficient_scope"'
  if (code !== 'UNAUTHENTICATED') return undefined
  if (reason === 'TOKEN_MISSING') return 'Bearer realm="otpd"'
  const description = tokenErrorDescriptions[reason ?? '']
  return description === undefined
    ? 'Application realm="otpd"'
    : `Bearer realm="otpd", error="invalid_token", error_description="${description}"`
}

const tokenErrorDescriptions: Record<string, string> = {
  TOKEN_INVALID: 'The token is not valid here',
  TOKEN_EXPIRED: 'The token has expired',
  TOKEN_REVOKED: 'The session of the token has ended',
}
