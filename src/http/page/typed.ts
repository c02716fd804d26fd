/** Zeros of the digits that people type in Arabic, Persian, Hindi, Bengali and Thai, and full-width. */
const zeros = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10]

/** Writes digits of other scripts as ASCII digits, and leaves out what phones add when they paste a number. */
const toAscii = (text: string | null): string =>
  (text ?? '')
    .replaceAll(/[٠-٩۰-۹०-९০-৯๐-๙０-９]/g, (digit) => {
      const code = digit.codePointAt(0) ?? 0
      return String(code - (zeros.find((zero) => code >= zero && code < zero + 10) ?? 0))
    })
    .replaceAll(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
    .trim()

/** Reads a code as people type it. */
export const readDigits = (text: string | null): string => toAscii(text).replaceAll(/[\s-]/g, '')

/** Reads a phone number as people type it. */
export const readTypedPhone = (text: string | null): string =>
  toAscii(text)
    .replaceAll(/[\s\u00a0]+/g, ' ')
    .replaceAll(/[/\u2010-\u2015]/g, '-')
    .slice(0, 64)
