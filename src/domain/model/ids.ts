import { base32 } from '../../shared/sids.ts'
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/**
 * Prefixes of developers, projects, applications, OTP requests, webhook endpoints, events, deliveries,
 * identities, audit entries, API tokens, HTTP requests, delivery attempts of a message, relayed messages, guard rules,
 * sessions of the ready page.
 */
export type IdPrefix =
  | 'dev'
  | 'prj'
  | 'app'
  | 'otp'
  | 'whk'
  | 'evt'
  | 'dlv'
  | 'idn'
  | 'aud'
  | 'tok'
  | 'req'
  | 'att'
  | 'msg'
  | 'rul'
  | 'ses'

export type NewId = (prefix: IdPrefix) => string

export { base32 }
const alphabet = Buffer.from(base32)

/**
 * Creates a generator of TypeIDs (spec 0.3): the prefix, `_`, and a UUIDv7 in 26 characters of base32. Ids of
 * one process sort in the order of their creation, also within a millisecond.
 */
export function createIds(clock: Clock, random: Random): NewId {
  const bytes = Buffer.alloc(16)
  let lastMs = 0
  let counter = 0

  return (prefix) => {
    const now = clock.now()
    random(bytes)
    if (now > lastMs) {
      lastMs = now
      // RFC 9562 §6.2: the counter starts at a random value with its top bit clear, to leave room to count.
      counter = (((bytes[6] ?? 0) & 0x07) << 8) | (bytes[7] ?? 0)
    } else if (++counter > 0xfff) {
      lastMs++
      counter = 0
    }
    bytes.writeUIntBE(lastMs, 0, 6)
    bytes.writeUInt16BE(0x7000 | counter, 6)
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
    return `${prefix}_${encode(bytes)}`
  }
}

/** The lowest possible id of that time, for range queries by id: all later ids are greater. */
export function lowestId(prefix: IdPrefix, timeMs: number): string {
  const bytes = new Uint8Array(16)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(timeMs) << 16n)
  return `${prefix}_${encode(bytes)}`
}

/** Reads the time of an id in milliseconds: 48 bits in its first ten digits, after two zeros. */
export function idTime(id: string): number {
  const digits = id.slice(id.indexOf('_') + 1)
  let time = 0
  for (let i = 0; i < 10; i++) time = time * 32 + base32.indexOf(digits[i] ?? '0')
  return time
}

/** Encodes 128 bits as 26 digits of five bits; the first digit holds only three. */
function encode(bytes: Uint8Array): string {
  let length = 0
  let buffer = 0
  let bits = 2
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      encodedDigits[length++] = alphabet[(buffer >>> bits) & 31] ?? 0
    }
  }
  return encodedDigits.toString('latin1')
}

/** Reused for every id: concatenating 26 strings takes twice as long. */
const encodedDigits = Buffer.alloc(26)

const suffix = '[0-7][0-9a-hjkmnp-tv-z]{25}'

/** Regular expression of an id, for schemas. */
export const idPattern = (prefix: IdPrefix) => `^${prefix}_${suffix}$`

const patterns = new Map<IdPrefix, RegExp>()

/** Checks the form of an id, not that the resource exists. */
export function isId(prefix: IdPrefix, value: string): boolean {
  let pattern = patterns.get(prefix)
  if (!pattern) patterns.set(prefix, (pattern = new RegExp(idPattern(prefix))))
  return pattern.test(value)
}
