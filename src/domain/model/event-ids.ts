import { base32 } from './ids.ts'

const digits = Buffer.from(base32)

/** Version 7, variant 2 (RFC 9562 §5.7), and zeros where other ids have random bits. */
const fixed = 'e008'

/**
 * The id of the log entry with this number: a TypeID like all others, whose UUIDv7 has the number where random bits may
 * stand, so that entries need no column and no index for it.
 *
 * @param at milliseconds since the epoch
 */
export function eventIdOf(at: number, seq: number): string {
  write(at, 4, 10)
  write(seq, 18, 12)
  return written.toString('latin1')
}

/** Written anew for every id: to put its digits together as text takes several times as long. */
const written = Buffer.from(`evt_${'0'.repeat(10)}${fixed}${'0'.repeat(12)}`)

/** What `eventIdOf` was given; undefined for ids that it cannot have made. */
export function readEventId(id: string): { at: number; seq: number } | undefined {
  if (id.slice(14, 18) !== fixed) return undefined
  const [at, seq] = [read(id.slice(4, 14)), read(id.slice(18))]
  return Number.isSafeInteger(seq) ? { at, seq } : undefined
}

/** In base32, in the place of so many digits. */
function write(number: number, from: number, length: number) {
  // Six digits are what the operators of bits can hold.
  const high = Math.floor(number / 2 ** 30)
  const low = number - high * 2 ** 30
  for (let i = 0; i < length; i++) {
    const bits = i < 6 ? low >>> (5 * i) : high >>> (5 * (i - 6))
    written[from + length - 1 - i] = digits[bits & 31] ?? 0
  }
}

function read(text: string): number {
  let number = 0
  for (const digit of text) number = number * 32 + base32.indexOf(digit)
  return number
}
