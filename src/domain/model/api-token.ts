import { includedScopes, type ApiTokenScope } from '../../shared/api-token-scopes.ts'
import type { Random } from './random.ts'

/** Requirement of a route: a scope, or a login, which no API token replaces. */
export type RequiredScope = ApiTokenScope | 'login'

/** A token with which a program calls the console routes in a developer's name. */
export type ApiToken = {
  id: string
  developerId: string
  /** Unique among the tokens of a developer. */
  name: string
  scopes: readonly ApiTokenScope[]
  /** First and last four hex digits: the only part that is shown again, and the lookup key. */
  preview: string
  createdAt: number
  /** Null: never. */
  expiresAt: number | null
  /** Precise to a minute. */
  lastUsedAt: number | null
}

export const apiTokenPrefix = 'otpd_pat_'

const hexDigits = 48
const format = new RegExp(`^${apiTokenPrefix}[0-9a-f]{${hexDigits}}$`)

/** Generates the value of an API token: 192 random bits after a prefix, for people and secret scanners. */
export function makeApiToken(random: Random): string {
  const bytes = new Uint8Array(hexDigits / 2)
  random(bytes)
  return apiTokenPrefix + bytes.toHex()
}

/** Cheap format check before any lookup. */
export const hasApiTokenFormat = (value: string) => format.test(value)

/** Formats a preview as `otpd_pat_1a2b****9f0e`. */
export const maskApiToken = (preview: string) =>
  `${apiTokenPrefix}${preview.slice(0, 4)}****${preview.slice(4)}`

/** Whether scopes suffice for a route. */
export const includesScope = (scopes: readonly ApiTokenScope[], required: RequiredScope) =>
  required !== 'login' &&
  scopes.some((scope) => scope === required || includedScopes[scope].includes(required))
