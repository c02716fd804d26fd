import { invalidField } from '../model/errors.ts'
import type { EndpointHeaders } from '../model/webhook-endpoint.ts'

export const webhookHeadersMax = 10
/** RFC 9110 §5.6.2 allows more; underscores are dropped by common proxies. */
export const headerNamePattern = '^[A-Za-z][A-Za-z0-9-]{0,63}$'
/** Visible ASCII with inner spaces (RFC 9110 §5.5): excludes line breaks, and bytes that parsers decode differently. */
export const headerValuePattern = '^[\\x21-\\x7e]([\\x20-\\x7e]{0,1022}[\\x21-\\x7e])?$'

/** Headers that otpd sets, and those that control framing, routing and encoding. */
const reservedHeaders =
  /^(webhook-.*|svix-.*|content-.*|proxy-.*|sec-.*|accept(-.*)?|connection|keep-alive|host|te|trailer|transfer-encoding|upgrade|expect|user-agent|date|via|http2-settings)$/

/**
 * Merges header changes as RFC 7396 (JSON Merge Patch) defines: a value sets a header, null removes it, and all others
 * stay. Merging lets callers change one header although they cannot read the values of the others.
 *
 * @throws INVALID_ARGUMENT a name is reserved or repeated, or there are more than ten headers
 */
export function applyHeaderChanges(
  current: EndpointHeaders,
  changes: Readonly<Record<string, string | null>>,
): EndpointHeaders {
  const merged = new Map(Object.entries(current))
  const seenNames = new Set<string>()
  for (const [headerName, value] of Object.entries(changes)) {
    const name = headerName.toLowerCase()
    if (reservedHeaders.test(name))
      throw invalidHeader(headerName, 'This header is reserved. Choose another name.')
    if (seenNames.has(name))
      throw invalidHeader(headerName, 'This header is given twice: names are case-insensitive. Send it once.')
    seenNames.add(name)
    if (value === null) merged.delete(name)
    else merged.set(name, value)
  }
  if (merged.size > webhookHeadersMax)
    throw invalidHeader('', `Expected at most ${webhookHeadersMax} headers.`)
  return Object.fromEntries(merged)
}

const invalidHeader = (name: string, message: string) =>
  invalidField('body', name === '' ? 'headers' : `headers.${name}`, message)
