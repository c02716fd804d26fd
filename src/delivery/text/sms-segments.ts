import { gsmAlphabet, gsmExtension } from './gsm-alphabet.ts'

/** National shift tables are not supported: gateways use them only if configured to. */
const basicCharacters = new Set(gsmAlphabet)
basicCharacters.delete('\x1b')

const extendedCharacters = new Set(Object.keys(gsmExtension))

export type SmsSize = {
  encoding: 'GSM-7' | 'UCS-2'
  /** Septets, or 16-bit units. */
  units: number
  parts: number
  /** Capacity of `parts` parts, in units. */
  unitsMax: number
  /** Characters outside the GSM alphabet, without repeats, in order of appearance. */
  foreign: string[]
}

/**
 * Measures a text as an SMS. One part holds 140 octets: 160 septets or 70 16-bit units. In a concatenated
 * message each part loses six octets to a header (3GPP TS 23.040 §9.2.3.24.1), which leaves 153 or 67.
 * Escaped characters and surrogate pairs are never split, so a part may stay one unit short.
 */
export function measureSms(text: string): SmsSize {
  const characters = [...text]
  const foreign = [
    ...new Set(characters.filter((one) => !basicCharacters.has(one) && !extendedCharacters.has(one))),
  ]
  const isGsm = foreign.length === 0
  const [single, concatenated] = isGsm ? [160, 153] : [70, 67]
  const widths = characters.map((one) => (isGsm ? (extendedCharacters.has(one) ? 2 : 1) : one.length))
  const units = widths.reduce((sum, width) => sum + width, 0)
  const parts = units <= single ? 1 : countParts(widths, concatenated)
  const unitsMax = parts === 1 ? single : parts * concatenated
  return { encoding: isGsm ? 'GSM-7' : 'UCS-2', units, parts, unitsMax, foreign }
}

function countParts(widths: readonly number[], size: number): number {
  let parts = 1
  let used = 0
  for (const width of widths) {
    if (used + width > size) {
      parts++
      used = 0
    }
    used += width
  }
  return parts
}
