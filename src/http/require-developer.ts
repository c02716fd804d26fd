import { Elysia } from 'elysia'
import type { Actor } from '../domain/accounts/audit.ts'
import type { DeveloperService, Login } from '../domain/accounts/developers.ts'
import type { ServiceError } from '../domain/model/errors.ts'
import type { ReadClient, IncomingRequest } from './client.ts'

/** A developer, where the call comes from, and when the token that this call came with ends; a stream ends with it. */
export type AuthenticatedDeveloper = Actor & { tokenExpiresAt: number }

/** Tells whose token an `Authorization` header carries. @throws UNAUTHENTICATED; FORBIDDEN; UNAVAILABLE */
export type AuthenticateDeveloper = (
  authorization: string | undefined,
  incoming: IncomingRequest,
) => Promise<AuthenticatedDeveloper>

/** Judges a token. @throws UNAUTHENTICATED (TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED); UNAVAILABLE */
export type VerifyToken = (token: string | undefined) => Promise<Login & { expiresAtMs: number }>

/**
 * Gives the routes beside it `developer`, before their input is looked at: a `derive` runs ahead of validation, a
 * macro's `resolve` behind it.
 */
export const requireDeveloper = (authenticate: AuthenticateDeveloper) =>
  new Elysia({ name: 'console-auth' }).derive(
    { as: 'scoped' },
    async ({ headers, request, server, set }) => ({
      developer: await authenticate(headers['authorization'], { request, server, set }),
    }),
  )

/**
 * Console authentication: a bearer token (RFC 6750 §2.1) and the developer that it speaks for, who is read
 * anew for every call, so that disabling holds from the next one on.
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

/** What follows the scheme, whose case does not matter (RFC 9110 §11.1); undefined for another scheme. */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S.*)$/i.exec(authorization ?? '')?.[1]
}

/**
 * The `WWW-Authenticate` header of a refused call, which every 401 has (RFC 9110 §11.6.1). For a token as in RFC 6750
 * §3, without an error word when no token came; for the headers of an application one for every cause, under a scheme
 * of the service's own. Undefined for every other error.
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
