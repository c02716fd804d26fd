/** Placeholder for values that must never appear in a log. */
export const redacted = '[hidden]'
/** Longer texts are truncated: a log line is not the place for a request body. */
const lengthMax = 2000

/**
 * Redacts a phone number: `+14155552671` becomes `+1•••••2671`, enough to recognize a number but not to call it. Shows
 * less than `maskPhone` of the console, which reveals the whole number on a key press: a log is kept and passed on.
 */
export function redactPhone(phone: string): string {
  const digits = phone.replace(/^%(?:25)*2B/i, '+').replace(/\D/g, '')
  const shown = Math.max(0, Math.min(4, digits.length - 5))
  const start = phone.startsWith('+') || /^%(?:25)*2B/i.test(phone) ? `+${digits.slice(0, 1)}` : ''
  return `${start}•••••${shown === 0 ? '' : digits.slice(-shown)}`
}

/** Patterns of secrets and phone numbers, applied in this order. */
const replacements: readonly [RegExp, string | ((match: string) => string)][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`],
  // JSON Web Tokens: the first part always begins with the base64 of `{"`.
  [/\beyJ[\w-]+(?:\.[\w-]*){0,2}/g, redacted],
  [/\bph_(live|test)_(secret|api)_[0-9a-f]*/gi, `ph_$1_$2_${redacted}`],
  [/\botpd_pat_[0-9a-f]*/gi, `otpd_pat_${redacted}`],
  [/\bwhsec_[\w+/=-]*/gi, `whsec_${redacted}`],
  // Setup tokens and refresh tokens.
  [/\b(st|rt)_[\w-]{8,}/g, `$1_${redacted}`],
  // Keys and hashes. The 48 digits of a client ID are kept: they follow an underscore and are not secret.
  [/\b[0-9a-f]{48,}\b/gi, redacted],
  [/(?<![\w+/-])[\w+/-]{43}=/g, redacted],
  // Phone numbers come before the patterns that end at a space, since a number may contain spaces.
  [/(?:\+|%(?:25)*2B)[1-9](?:[ .()-]{0,2}\d){6,14}/gi, redactPhone],
  [/(?<![a-z0-9])00[1-9](?:[ .()-]{0,2}\d){6,14}/gi, redactPhone],
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

/** Removes phone numbers, codes and credentials from free text, such as error messages. */
export function scrub(text: string): string {
  // Truncated twice: the first cut bounds the work; the second drops the end, where the first may have cut a secret in
  // half so that no pattern matches it.
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

/** Classifies a field by its name alone. */
export function classifyField(name: string): 'phone' | 'secret' | 'plain' {
  const normalized = name.toLowerCase().replace(/[^a-z]/g, '')
  if (phoneFieldPattern.test(normalized)) return 'phone'
  return secretFieldPattern.test(normalized) ? 'secret' : 'plain'
}
