import { invalidRequest } from '../domain/model/errors.ts'

/**
 * Rejects a query string that two parsers may read differently: a repeated parameter (the framework takes the last), an
 * invalid escape (the framework keeps it verbatim), or NUL (not every database can search for it).
 *
 * @throws INVALID_ARGUMENT
 */
export function refuseAmbiguousQuery(url: string) {
  const start = url.indexOf('?')
  if (start === -1) return
  const names = new Set<string>()
  for (const pair of url.slice(start + 1).split('&')) {
    if (pair === '') continue
    const [name, value] = splitAt(pair, '=').map(decode)
    if (name === undefined || value === undefined) {
      throw refusal('INVALID', 'Expected percent-encoded UTF-8 without NUL.')
    }
    if (names.has(name)) throw refusal('REPEATED', 'A query parameter is repeated. Send it once.')
    names.add(name)
  }
}

function splitAt(text: string, separator: string): [string, string] {
  const index = text.indexOf(separator)
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + 1)]
}

function decode(text: string): string | undefined {
  if (!/[%+\0]/.test(text)) return text
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}

const refusal = (code: string, message: string) => invalidRequest([{ in: 'query', path: '', code, message }])
