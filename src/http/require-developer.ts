import { Elysia } from 'elysia'
import type { Actor } from '../domain/model/audit.ts'
import type { DeveloperService, Login } from '../domain/accounts/developers.ts'
import { ServiceError } from '../domain/model/errors.ts'
import type { ReadClient, IncomingRequest } from './client.ts'

/** A developer, the origin of the request, and the expiry of its token, when log streams end as well. */
export type AuthenticatedDeveloper = Actor & { tokenExpiresAt: number }

/** Authenticates a developer by the `Authorization` header. @throws UNAUTHENTICATED; FORBIDDEN; UNAVAILABLE */
export type AuthenticateDeveloper = (
  authorization: string | undefined,
  incoming: IncomingRequest,
) => Promise<AuthenticatedDeveloper>

/** Verifies a token. @throws UNAUTHENTICATED (TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED); UNAVAILABLE */
export type VerifyToken = (token: string | undefined) => Promise<Login & { expiresAtMs: number }>

/**
 * Plugin that authenticates a developer and adds `developer` to the context. It is a `derive`, which runs before
 * validation; the `resolve` of a macro would run after it.
 */
export const requireDeveloper = (authenticate: AuthenticateDeveloper) =>
  new Elysia({ name: 'require-developer' }).derive(
    { as: 'scoped' },
    async ({ headers, request, server, set }) => ({
      developer: await authenticate(headers['authorization'], { request, server, set }),
    }),
  )

/**
 * Creates the authentication of developers by bearer token (RFC 6750 §2.1). The developer is read from the database for
 * every request, so that disabling an account takes effect on the next one.
 */
export function createDeveloperAuthenticator(needs: {
  verify: VerifyToken
  developers: Pick<DeveloperService, 'resolveLogin'>
  readClient: ReadClient
}): AuthenticateDeveloper {
  return async (authorization, incoming) => {
    const login = await needs.verify(bearerToken(authorization))
    const { origin } = needs.readClient(incoming)
    return {
      ...(await needs.developers.resolveLogin(login, origin)),
      origin,
      tokenExpiresAt: login.expiresAtMs,
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

/** Extracts a bearer token. The scheme is case-insensitive (RFC 9110 §11.1). @returns undefined for other schemes */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S.*)$/i.exec(authorization ?? '')?.[1]
}

/**
 * Returns the `WWW-Authenticate` header that every 401 must have (RFC 9110 §11.6.1). For tokens it follows RFC 6750 §3,
 * without an error code if no token was sent. For applications it names otpd's own scheme and never the cause.
 *
 * @returns undefined for errors other than UNAUTHENTICATED
 */
export function wwwAuthenticateFor({ code, reason }: ServiceError): string | undefined {
  if (code !== 'UNAUTHENTICATED') return undefined
  if (reason === 'TOKEN_MISSING') return 'Bearer realm="otpd"'
  const description = tokenErrorDescriptions[reason ?? '']
  return description === undefined
    ? 'Application realm="otpd"'
    : `Bearer realm="otpd", error="invalid_token", error_description="${description}"`
}

const tokenErrorDescriptions: Record<string, string> = {
  TOKEN_INVALID: 'The ID token is not valid here',
  TOKEN_EXPIRED: 'The ID token has expired',
}
