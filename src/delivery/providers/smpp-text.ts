import { gsmAlphabet, gsmEscapeCode, gsmExtension } from '../text/gsm-alphabet.ts'

const septets = new Map<string, readonly number[]>([
  ...gsmAlphabet.map((character, code) => [character, [code]] as const),
  ...Object.entries(gsmExtension).map(([character, code]) => [character, [gsmEscapeCode, code]] as const),
])
septets.delete('\x1b')

/**
 * The `short_message` of one `submit_sm`; starts with a concatenation header if the text has several parts.
 */
export type SmppPart = { bytes: Buffer; isUnicode: boolean; hasHeader: boolean }

/**
 * Splits a text into parts: in the GSM alphabet with one septet per octet, as SMPP 3.4 carries it, otherwise
 * in UCS-2. Several parts get a header with an 8-bit reference (3GPP TS 23.040 §9.2.3.24.1); characters are
 * never split.
 *
 * @param reference distinguishes the parts of this message from those of another message to the same phone
 */
export function splitForSmpp(text: string, reference: number): SmppPart[] {
  const characters = [...text]
  const isUnicode = characters.some((character) => !septets.has(character))
  const encoded = characters.map((character) =>
    isUnicode ? Buffer.from(character, 'utf16le').swap16() : Buffer.from(septets.get(character) ?? []),
  )
  const [single, concatenated] = isUnicode ? [140, 134] : [160, 153]
  const whole = Buffer.concat(encoded)
  if (whole.byteLength <= single) return [{ bytes: whole, isUnicode, hasHeader: false }]

  const chunks = chunk(encoded, concatenated)
  return chunks.map((part, index) => ({
    bytes: Buffer.concat([Buffer.from([5, 0, 3, reference & 0xff, chunks.length, index + 1]), part]),
    isUnicode,
    hasHeader: true,
  }))
}

function chunk(characters: readonly Buffer[], size: number): Buffer[] {
  const chunks: Buffer[][] = [[]]
  let bytesUsed = 0
  for (const character of characters) {
    if (bytesUsed + character.byteLength > size) {
      chunks.push([])
      bytesUsed = 0
    }
    chunks.at(-1)?.push(character)
    bytesUsed += character.byteLength
  }
  return chunks.map((parts) => Buffer.concat(parts))
}
