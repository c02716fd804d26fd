import { base32 } from './ids.ts'

const alphabet = Buffer.from(base32)

/** Version 7 and variant 2 (RFC 9562 §5.7), with zeros where other ids have random bits. */
const versionAndVariant = 'e008'

/**
 * Encodes the id of a log entry: a TypeID like all others, whose UUIDv7 holds the entry's sequence number
 * instead of random bits, so that entries need neither a column nor an index for their id.
 *
 * @param at milliseconds since the epoch
 */
export function encodeEventId(at: number, seq: number): string {
  writeBase32(at, 4, 10)
  writeBase32(seq, 18, 12)
  return idBuffer.toString('latin1')
}

/** Reused for every id: building the id by string concatenation is several times slower. */
const idBuffer = Buffer.from(`evt_${'0'.repeat(10)}${versionAndVariant}${'0'.repeat(12)}`)

/** Reverses `encodeEventId`. @returns undefined for an id of another form */
export function decodeEventId(id: string): { at: number; seq: number } | undefined {
  if (id.slice(14, 18) !== versionAndVariant) return undefined
  const [at, seq] = [readBase32(id.slice(4, 14)), readBase32(id.slice(18))]
  return Number.isSafeInteger(seq) ? { at, seq } : undefined
}

/** Writes a number as `length` base32 digits into the buffer, from position `from`. */
function writeBase32(number: number, from: number, length: number) {
  // Bitwise operators work on 32 bits, which hold six base32 digits.
  const high = Math.floor(number / 2 ** 30)
  const low = number - high * 2 ** 30
  for (let i = 0; i < length; i++) {
    const bits = i < 6 ? low >>> (5 * i) : high >>> (5 * (i - 6))
    idBuffer[from + length - 1 - i] = alphabet[bits & 31] ?? 0
  }
}

function readBase32(text: string): number {
  let number = 0
  for (const digit of text) number = number * 32 + base32.indexOf(digit)
  return number
}
