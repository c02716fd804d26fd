/** Decodes base32 (RFC 4648 §6), as an authenticator app does. Written apart from the encoder of otpd. */
export function decodeBase32(text: string): Uint8Array {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bytes: number[] = []
  let buffer = 0
  let bitCount = 0
  for (const letter of text) {
    buffer = (buffer << 5) | alphabet.indexOf(letter)
    bitCount += 5
    if (bitCount < 8) continue
    bitCount -= 8
    bytes.push((buffer >> bitCount) & 0xff)
    buffer &= (1 << bitCount) - 1
  }
  return new Uint8Array(bytes)
}
