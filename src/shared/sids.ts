/** Base32 digits of ids, in ascending order. */
export const base32 = '0123456789abcdefghjkmnpqrstvwxyz'

/** The 128 bits of an id as 32 hex digits: the form in which Twilio writes ids, after two letters. */
export function idToHex(id: string): string {
  let bits = 0n
  for (const digit of id.slice(id.indexOf('_') + 1)) bits = bits * 32n + BigInt(base32.indexOf(digit))
  return bits.toString(16).padStart(32, '0')
}

/** Makes the id of 32 hex digits, in upper or lower case. */
export function hexToId(prefix: string, hex: string): string {
  let bits = BigInt(`0x${hex}`)
  let digits = ''
  for (let count = 0; count < 26; count++) {
    digits = `${base32[Number(bits & 31n)]}${digits}`
    bits >>= 5n
  }
  return `${prefix}_${digits}`
}

/** Writes an id with two letters of Twilio's, such as `AC` for an application. */
export const toSid = (letters: string, id: string) => `${letters}${idToHex(id)}`

/** Reads a sid. @returns the id, or undefined for anything but these letters and 32 hex digits */
export function fromSid(letters: readonly string[], prefix: string, sid: string): string | undefined {
  const isSid = letters.includes(sid.slice(0, 2)) && /^[0-9a-f]{32}$/i.test(sid.slice(2))
  return isSid ? hexToId(prefix, sid.slice(2)) : undefined
}

/**
 * Joins a client secret and an API key for systems that have room for one secret: 96 hex digits, without the prefixes,
 * because some clients take nothing but letters and digits.
 */
export const joinSecrets = (clientSecret: string, apiKey: string) =>
  clientSecret.slice(-secretDigits) + apiKey.slice(-secretDigits)

/** Splits what `joinSecrets` joined. @returns the hex digits of both; undefined if it has another form */
export function splitSecrets(joined: string): { clientSecret: string; apiKey: string } | undefined {
  if (!/^[0-9a-f]{96}$/.test(joined)) return undefined
  return { clientSecret: joined.slice(0, secretDigits), apiKey: joined.slice(secretDigits) }
}

const secretDigits = 48
