import { invalidField } from '../model/errors.ts'
import type { Keys } from '../model/keys.ts'
import type { Random } from '../model/clock.ts'
import { seal, unseal } from '../model/sealed.ts'

/**
 * The headers that an endpoint asks for beside ours, by their names in lower case. Their values are credentials of
 * the receiver's: kept encrypted, and never shown again.
 */
export type SealedHeaders = Readonly<Record<string, string>>

export const webhookHeadersMax = 10
/** RFC 9110 §5.6.2 allows more; underscores are dropped by common proxies. */
export const headerNamePattern = '^[A-Za-z][A-Za-z0-9-]{0,63}$'
/** Visible ASCII with spaces inside (RFC 9110 §5.5): neither a line of its own nor what readers decode differently. */
export const headerValuePattern = '^[\\x21-\\x7e]([\\x20-\\x7e]{0,1022}[\\x21-\\x7e])?$'

/** Ours, and those that decide how the message is framed, routed and read. */
const reservedHeaders =
  /^(webhook-.*|svix-.*|content-.*|proxy-.*|sec-.*|accept(-.*)?|connection|keep-alive|host|te|trailer|transfer-encoding|upgrade|expect|user-agent|date|via|http2-settings)$/

const sealContext = (endpointId: string, name: string) => `${endpointId} ${name}`

/**
 * What an endpoint has after a change, by RFC 7396: a name with a value is set, with null removed, and what is not
 * named stays. A caller who cannot read the values could otherwise change one only by knowing all.
 *
 * @throws INVALID_ARGUMENT a reserved name, one that stands twice, or more than ten
 */
export function applyHeaderChanges(
  needs: { keys: Pick<Keys, 'webhookHeader'>; random: Random },
  endpointId: string,
  current: SealedHeaders,
  changes: Readonly<Record<string, string | null>>,
): SealedHeaders {
  const merged = new Map(Object.entries(current))
  const seenNames = new Set<string>()
  for (const [headerName, value] of Object.entries(changes)) {
    const name = headerName.toLowerCase()
    if (reservedHeaders.test(name)) throw invalidHeader(headerName, 'This header is set by the service.')
    if (seenNames.has(name)) throw invalidHeader(headerName, 'This header stands twice.')
    seenNames.add(name)
    if (value === null) merged.delete(name)
    else merged.set(name, seal(needs.keys.webhookHeader, sealContext(endpointId, name), value, needs.random))
  }
  if (merged.size > webhookHeadersMax)
    throw invalidHeader('', `Expected at most ${webhookHeadersMax} headers.`)
  return Object.fromEntries(merged)
}

/** The headers as they are sent. */
export function unsealHeaders(
  keys: Pick<Keys, 'webhookHeader'>,
  endpointId: string,
  headers: SealedHeaders,
): Record<string, string> {
  const entries = Object.entries(headers)
  return Object.fromEntries(
    entries.map(([name, sealed]) => [
      name,
      unseal(keys.webhookHeader, sealContext(endpointId, name), sealed),
    ]),
  )
}

const invalidHeader = (name: string, message: string) =>
  invalidField('body', name === '' ? 'headers' : `headers.${name}`, message)
