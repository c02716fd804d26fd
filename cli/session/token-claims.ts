import { isRecord, parseJson } from '../../src/shared/json.ts'

export type TokenGrant = {
  idToken: string
  refreshToken: string | null
  expiresAt: string | null
  /** End of the session if it is not renewed before; absent if the provider does not say it. */
  sessionEndsAt?: string
}

/** Decodes the claims of a JWT without verifying it; only the server verifies tokens. Empty if it is not a JWT. */
export function readClaims(token: string): Record<string, unknown> {
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return isRecord(claims) ? claims : {}
}

/** Returns the `exp` claim as an ISO time, or null. */
export function expiryFromToken(token: string) {
  const { exp } = readClaims(token)
  return typeof exp === 'number' ? new Date(exp * 1000).toISOString() : null
}

/** Returns the `email` claim, or null. */
export function emailFromToken(token: string) {
  const { email } = readClaims(token)
  return typeof email === 'string' ? email : null
}
