import { timingSafeEqual } from 'node:crypto'
import { hmac, type Keys } from './keys.ts'

export const codeDigits = 6
export const codePattern = '^[0-9]{6}$'

/** The code that every `test` application's requests to a fictional number have. */
const fictionalCode = '424242'

/** +1 NXX 555-0100 to 0199: numbers that the North American plan keeps for fiction. */
const fictionalPhone = /^\+1[0-9]{3}55501[0-9]{2}$/

export type CodeSource = { id: string; codeSalt: string; phone: string; environment: 'live' | 'test' }

/**
 * The code of a request, made anew whenever it is needed: in the manner of HOTP (RFC 4226), from an HMAC of the
 * request's id and its salt. Six digits with leading zeros, each of the million equally likely.
 */
export function deriveCode(keys: Keys, request: CodeSource): string {
  if (request.environment === 'test' && fictionalPhone.test(request.phone)) return fictionalCode
  const salt = Uint8Array.fromBase64(request.codeSalt, { alphabet: 'base64url' })
  for (let round = 0; ; round++) {
    const digest = hmac(keys.code).update(request.id).update(salt).update(Uint8Array.of(round)).digest()
    for (let offset = 0; offset < digest.length; offset += 4) {
      const number = digest.readUInt32BE(offset)
      // The last, incomplete million of the range would make the low codes likelier.
      if (number < unbiasedBelow) return String(number % 1_000_000).padStart(codeDigits, '0')
    }
  }
}

const unbiasedBelow = 2 ** 32 - (2 ** 32 % 1_000_000)

/**
 * What is stored of a code: 96 bits of a keyed hash. Bound to its request: the code of an earlier or later one does not
 * match.
 */
export const hashCode = (keys: Keys, requestId: string, code: string) =>
  hmac(keys.codeHash).update(`${requestId}${code}`).digest('base64url').slice(0, 16)

/** Whether `code` is the one that `codeHash` was made of. Takes the same time whatever it is. */
export function matchesCode(keys: Keys, requestId: string, code: string, codeHash: string): boolean {
  const expected = utf8.encode(codeHash)
  const actual = utf8.encode(hashCode(keys, requestId, code))
  return expected.length === actual.length && timingSafeEqual(expected, actual)
}

/** Bytes without a `Buffer`, here and in credentials.ts: every call makes several, which cost it 3 µs. */
const utf8 = new TextEncoder()
