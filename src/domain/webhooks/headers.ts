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
const reserved =
  /^(webhook-.*|svix-.*|content-.*|proxy-.*|sec-.*|accept(-.*)?|connection|keep-alive|host|te|trailer|transfer-encoding|upgrade|expect|user-agent|date|via|http2-settings)$/

const placeOf = (endpointId: string, name: string) => `${endpointId} ${name}`

/**
 * What an endpoint has after a change, by RFC 7396: a name with a value is set, with null removed, and what is not
 * named stays. A caller who cannot read the values could otherwise change one only by knowing all.
 *
 * @throws INVALID_ARGUMENT a reserved name, one that stands twice, or more than ten
 */
export function changeHeaders(
  needs: { keys: Pick<Keys, 'webhookHeader'>; random: Random },
  endpointId: string,
  before: SealedHeaders,
  changes: Readonly<Record<string, string | null>>,
): SealedHeaders {
  const after = new Map(Object.entries(before))
  const named = new Set<string>()
  for (const [written, value] of Object.entries(changes)) {
    const name = written.toLowerCase()
    if (reserved.test(name)) throw invalid(written, 'This header is set by the service.')
    if (named.has(name)) throw invalid(written, 'This header stands twice.')
    named.add(name)
    if (value === null) after.delete(name)
    else after.set(name, seal(needs.keys.webhookHeader, placeOf(endpointId, name), value, needs.random))
  }
  if (after.size > webhookHeadersMax) throw invalid('', `Expected at most ${webhookHeadersMax} headers.`)
  return Object.fromEntries(after)
}

/** The headers as they are sent. */
export function openHeaders(
  keys: Pick<Keys, 'webhookHeader'>,
  endpointId: string,
  headers: SealedHeaders,
): Record<string, string> {
  const entries = Object.entries(headers)
  return Object.fromEntries(
    entries.map(([name, sealed]) => [name, unseal(keys.webhookHeader, placeOf(endpointId, name), sealed)]),
  )
}

const invalid = (name: string, message: string) =>
  invalidField('body', name === '' ? 'headers' : `headers.${name}`, message)
