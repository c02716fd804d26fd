import { hmac, timingSafeEqualBytes } from '../../shared/hmac.ts'
import type { Keys } from './keys.ts'
import { variableNames } from './message-template.ts'
import type { MessageVariables } from './message-variables.ts'
import { isFictionalPhone } from './phone.ts'
import type { Random } from './random.ts'
import type { Environment } from '../../shared/otp-values.ts'

export const codeDigits = 6
export const codePattern = '^[0-9]{6}$'

/**
 * Attempts that a code has: the brute-force limit, fixed, not a setting. The tables check it too
 * (`attempts between 0 and 5`): raising it needs a migration.
 */
export const attemptsMax = 5

/** Fixed code of every request by a `test` application to a fictional number. */
const fictionalCode = '424242'

export type CodeSource = {
  id: string
  codeSalt: string
  phone: string
  environment: Environment
  /** Template of its message. Its variables are bound into the code. */
  template?: { variables: MessageVariables | null } | null
}

/** Stored parts of a code, from which it is derived again. */
type StoredCodeSource = CodeSource & { codeHash: string }

type CodeKeys = Pick<Keys, 'code' | 'codeHash'>

/** Makes the salt of a new code. */
export function newCodeSalt(random: Random): string {
  const salt = new Uint8Array(16)
  random(salt)
  return salt.toBase64({ alphabet: 'base64url', omitPadding: true })
}

/**
 * Derives the code of a request from an HMAC of its id and salt, similar to HOTP (RFC 4226), so that codes
 * need not be stored. Six digits with leading zeros; all million codes are equally likely. The code of a payment depends
 * on its amount and payee too (dynamic linking, Delegated Regulation (EU) 2018/389, article 5).
 */
export function deriveCode({ code: key }: Pick<Keys, 'code'>, request: CodeSource): string {
  if (request.environment === 'test' && isFictionalPhone(request.phone)) return fictionalCode
  const salt = Uint8Array.fromBase64(request.codeSalt, { alphabet: 'base64url' })
  const bound = `${bindingText(request.template?.variables)}${request.id}`
  for (let round = 0; ; round++) {
    const digest = hmac(key).update(bound).update(salt).update(Uint8Array.of(round)).digest()
    for (let offset = 0; offset < digest.length; offset += 4) {
      const number = digest.readUInt32BE(offset)
      // Rejection sampling: avoids modulo bias.
      if (number < unbiasedBelow) return String(number % 1_000_000).padStart(codeDigits, '0')
    }
  }
}

const unbiasedBelow = 2 ** 32 - (2 ** 32 % 1_000_000)

/**
 * Writes variables as the text that is hashed before the id of a request; without them there is none. Each name and value has
 * its length before it, so that no two payments have the same text, and no id begins like it.
 */
const bindingText = (variables: MessageVariables | null | undefined): string =>
  variables
    ? variableNames.map((name) => `${name} ${variables[name].length} ${variables[name]} `).join('')
    : ''

/**
 * Hashes a code for storage: 96 bits of a keyed hash. Bound to the request, so that the code of another request never
 * matches, and to the variables of a payment, so that the code never matches with those of another.
 */
export const hashCode = (
  keys: Pick<Keys, 'codeHash'>,
  requestId: string,
  code: string,
  variables?: MessageVariables | null,
) =>
  hmac(keys.codeHash)
    .update(`${bindingText(variables)}${requestId}${code}`)
    .digest('base64url')
    .slice(0, 16)

/**
 * Finds the keys that made the code of a stored request: those of before, if the keys were replaced and the request
 * has not been ended yet.
 */
export const codeKeysOf = (keys: Keys, request: StoredCodeSource): CodeKeys =>
  [keys, ...keys.endedCodes].find(
    (version) =>
      hashCode(version, request.id, deriveCode(version, request), request.template?.variables) ===
      request.codeHash,
  ) ?? keys

/** Derives the code of a stored request, also if the keys were replaced since. */
export const deriveStoredCode = (keys: Keys, request: StoredCodeSource): string =>
  deriveCode(keys.endedCodes.length === 0 ? keys : codeKeysOf(keys, request), request)

/** Compares `code` with a stored hash in constant time. @param variables of the payment that the caller verifies */
export function matchesCode(
  keys: CodeKeys & Partial<Pick<Keys, 'endedCodes'>>,
  requestId: string,
  code: string,
  codeHash: string,
  variables: MessageVariables | null = null,
): boolean {
  const expected = utf8.encode(codeHash)
  const matches = (version: CodeKeys) =>
    timingSafeEqualBytes(utf8.encode(hashCode(version, requestId, code, variables)), expected)
  return matches(keys) || (keys.endedCodes ?? []).some(matches)
}

/** Faster than `Buffer.from`, here and in credentials.ts: saves about 3 µs a call. */
const utf8 = new TextEncoder()
