import { isRecord } from './profile.ts'

export type TokenGrant = { idToken: string; refreshToken: string | null; expiresAt: string | null }

/** What the token says about itself; only the server checks whether that is true. */
export function readClaims(token: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return isRecord(claims) ? claims : {}
  } catch {
    return {}
  }
}

export function expiryFromToken(token: string) {
  const { exp } = readClaims(token)
  return typeof exp === 'number' ? new Date(exp * 1000).toISOString() : null
}

export function emailFromToken(token: string) {
  const { email } = readClaims(token)
  return typeof email === 'string' ? email : null
}
