const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const pairs = Array.from({ length: 1024 }, (_, i) => alphabet.charAt(i >> 5) + alphabet.charAt(i & 31))

/** Version 7, variant 2 (RFC 9562 §5.7), and zeros where other ids have random bits. */
const fixed = 'e008'

/**
 * The id of the log entry with this number: a TypeID like all others, whose UUIDv7 has the number where random bits may
 * stand, so that entries need no column and no index for it.
 *
 * @param at milliseconds since the epoch
 */
export const eventIdOf = (at: number, seq: number): string => `evt_${write(at, 5)}${fixed}${write(seq, 6)}`

/** What `eventIdOf` was given; undefined for ids that it cannot have made. */
export function readEventId(id: string): { at: number; seq: number } | undefined {
  if (id.slice(14, 18) !== fixed) return undefined
  const [at, seq] = [read(id.slice(4, 14)), read(id.slice(18))]
  return Number.isSafeInteger(seq) ? { at, seq } : undefined
}

/** In base32, two digits at a time. */
function write(number: number, length: number): string {
  let text = ''
  let rest = number
  for (let i = 0; i < length; i++) {
    const high = Math.floor(rest / 1024)
    text = (pairs[rest - high * 1024] ?? '') + text
    rest = high
  }
  return text
}

function read(text: string): number {
  let number = 0
  for (const digit of text) number = number * 32 + alphabet.indexOf(digit)
  return number
}
