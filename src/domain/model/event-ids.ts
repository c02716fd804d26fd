import { base32 } from './ids.ts'

const alphabet = Buffer.from(base32)

/** Version 7, variant 2 (RFC 9562 §5.7), and zeros where other ids have random bits. */
const versionAndVariant = 'e008'

/**
 * The id of the log entry with this number: a TypeID like all others, whose UUIDv7 has the number where random bits may
 * stand, so that entries need no column and no index for it.
 *
 * @param at milliseconds since the epoch
 */
export function encodeEventId(at: number, seq: number): string {
  writeBase32(at, 4, 10)
  writeBase32(seq, 18, 12)
  return idBuffer.toString('latin1')
}

/** Written anew for every id: to put its digits together as text takes several times as long. */
const idBuffer = Buffer.from(`evt_${'0'.repeat(10)}${versionAndVariant}${'0'.repeat(12)}`)

/** What `encodeEventId` was given; undefined for ids that it cannot have made. */
export function decodeEventId(id: string): { at: number; seq: number } | undefined {
  if (id.slice(14, 18) !== versionAndVariant) return undefined
  const [at, seq] = [readBase32(id.slice(4, 14)), readBase32(id.slice(18))]
  return Number.isSafeInteger(seq) ? { at, seq } : undefined
}

/** In base32, in the place of so many digits. */
function writeBase32(number: number, from: number, length: number) {
  // Six digits are what the operators of bits can hold.
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
