/**
 * Creates a function that replaces values which a build may choose freely by numbered names: the third id of a request
 * becomes `otp#3`, the second secret `ph_live_secret#2`. Two builds that behave alike then give the same text, even
 * if they take random bytes in another order. The same value always gets the same name.
 */
export function createNormalizer(): (text: string) => string {
  const names = new Map<string, string>()
  const counts = new Map<string, number>()

  function nameOf(kind: string, value: string): string {
    const known = names.get(value)
    if (known !== undefined) return known
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    const name = `${kind}#${count}`
    names.set(value, name)
    return name
  }

  return (text) =>
    freeValues.reduce(
      (normalized, { pattern, kind }) =>
        normalized.replace(pattern, (value, prefix: string) => nameOf(kind ?? prefix, value)),
      text,
    )
}

/** Order matters: a pattern must not match inside a value that a later one names. `kind` defaults to the first group. */
const freeValues: ReadonlyArray<{ pattern: RegExp; kind?: string }> = [
  // Cursors, access tokens and other sealed texts: longer than every id.
  { pattern: /(?<="nextCursor":"|cursor=)[^"&]+/g, kind: 'cursor' },
  { pattern: /(?<="access_token":")[^"]+/g, kind: 'token' },
  { pattern: /(otpd_pat)_[\w-]{20,}/g },
  { pattern: /(ph_(?:live|test)_(?:client|secret|api))_[0-9a-f]{48}/g },
  { pattern: /(whsec)_[\w+/=]{24,}/g },
  // Sids of the façade of Twilio Verify.
  { pattern: /\b(AC|VA|VE|VL)[0-9a-f]{32}\b/g },
  { pattern: /\b([a-z]{3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g },
  { pattern: /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, kind: 'uuid' },
  { pattern: /[0-9a-f]{4}\*{4}[0-9a-f]{4}\b/g, kind: 'preview' },
  // The numbers of developers.
  { pattern: /\+999\d{10}/g, kind: 'virtual' },
  // Codes, written and spoken. In JSON a number follows one of `:,[`.
  { pattern: /(?<![\d.+:,[-])\d{6}(?![\d.])/g, kind: 'code' },
  { pattern: /(?:\d, ){5}\d/g, kind: 'spoken' },
]
