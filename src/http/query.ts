import { invalidRequest } from '../domain/model/errors.ts'
import { isRepeatableName } from './caller-names.ts'

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
    if (name === undefined || value === undefined)
      throw refusal(name, 'INVALID', 'Expected percent-encoded UTF-8 without NUL.')
    if (names.has(name)) throw refusal(name, 'REPEATED', 'The query parameter is repeated. Send it once.')
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

function refusal(name: string | undefined, code: string, message: string) {
  const path = name !== undefined && isRepeatableName(name) ? name : ''
  return invalidRequest([{ in: 'query', path, code, message }])
}

/** Restores a plus sign that was not escaped: a query string has one for a space. */
export const withPlus = (phone: string) => phone.replace(/^ /, '+')
