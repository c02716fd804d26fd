/** What must never stand in a log, and how it looks where it nearly did. */

export const redacted = '[hidden]'
/** Longer texts are cut: a log line is no place for a body. */
const lengthMax = 2000

/** `+14155552671` becomes `+1•••••2671`: enough to recognise one's own number, not to call another's. */
export function maskPhone(phone: string): string {
  const digits = phone.replace(/^%(?:25)*2B/i, '+').replace(/\D/g, '')
  const shown = Math.max(0, Math.min(4, digits.length - 5))
  const start = phone.startsWith('+') || /^%(?:25)*2B/i.test(phone) ? `+${digits.slice(0, 1)}` : ''
  return `${start}•••••${shown === 0 ? '' : digits.slice(-shown)}`
}

const replacements: readonly [RegExp, string | ((match: string) => string)][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`],
  // A JSON Web Token: its first part always begins with the base64 of `{"`.
  [/\beyJ[\w-]+(?:\.[\w-]*){0,2}/g, redacted],
  [/\bph_(live|test)_(secret|api)_[0-9a-f]*/gi, `ph_$1_$2_${redacted}`],
  [/\bwhsec_[\w+/=-]*/gi, `whsec_${redacted}`],
  // Setup tokens and refresh tokens.
  [/\b(st|rt)_[\w-]{8,}/g, `$1_${redacted}`],
  // Keys and hashes. The 48 digits of a client ID stay: they follow an underscore, and are no secret.
  [/\b[0-9a-f]{48,}\b/gi, redacted],
  [/(?<![\w+/-])[\w+/-]{43}=/g, redacted],
  // Before what ends at a space: a number may have some.
  [/(?:\+|%(?:25)*2B)[1-9](?:[ .()-]{0,2}\d){6,14}/gi, maskPhone],
  [/(?<![a-z0-9])00[1-9](?:[ .()-]{0,2}\d){6,14}/gi, maskPhone],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, `$1${redacted}@`],
  [/\?[\w.%[\]-]+=[^\s"'<>]*/g, `?${redacted}`],
  [
    /((?:password|passwd|secret|token|api[_-]?key|(?<![a-z])(?:otp|code))["']?\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s,;&]+)/gi,
    `$1${redacted}`,
  ],
  [
    /(["'](?:password|passwd|secret|token|api[_-]?key|otp|code)["']\s*:\s*)(?:"[^"]*"|'[^']*')/gi,
    `$1${redacted}`,
  ],
  // Six digits on their own may be a code.
  [/(?<![a-z0-9])\d{6}(?![a-z0-9])/gi, '••••••'],
]

/** Removes phone numbers, codes and credentials from a text that was not written with a log in mind. */
export function scrub(text: string): string {
  // Cut twice: the first cut bounds the work, the second drops an end that the first may have made unrecognisable.
  let result = text.length > 2 * lengthMax ? text.slice(0, 2 * lengthMax) : text
  for (const [pattern, replacement] of replacements) {
    result =
      typeof replacement === 'string'
        ? result.replace(pattern, replacement)
        : result.replace(pattern, replacement)
  }
  return result.length > lengthMax || text.length > 2 * lengthMax ? `${result.slice(0, lengthMax)}…` : result
}

const phoneFieldPattern = /(?:phone|phonenumber|msisdn)$/
const secretFieldPattern =
  /(?:password|secret|token|authorization|cookie|apikey|masterkey|privatekey|codehash|salt)$|^(?:otp|otpcode)$/

/** What a field's name alone says of its value. */
export function classifyField(name: string): 'phone' | 'secret' | 'plain' {
  const normalized = name.toLowerCase().replace(/[^a-z]/g, '')
  if (phoneFieldPattern.test(normalized)) return 'phone'
  return secretFieldPattern.test(normalized) ? 'secret' : 'plain'
}
