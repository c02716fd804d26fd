import type { Sealing } from './engine/sealing.ts'
import type { EndpointHeaders } from '../domain/model/webhook-endpoint.ts'

const column = 'webhook_endpoints.headers'

/** Encrypts the headers of an endpoint as one text. @returns null if it has none */
export const sealHeaders = (sealing: Sealing, endpointId: string, headers: EndpointHeaders): string | null =>
  Object.keys(headers).length === 0 ? null : sealing.sealText(column, endpointId, JSON.stringify(headers))

/** Decrypts the output of `sealHeaders`, or of 0.1.0. @returns null if they cannot be decrypted */
export function openHeaders(
  sealing: Sealing,
  endpointId: string,
  stored: string | null,
): EndpointHeaders | null {
  if (stored === null) return {}
  const text = sealing.openText(column, endpointId, stored)
  if (text === null) return null
  const headers: EndpointHeaders = JSON.parse(text)
  // 0.1.0 stored plain names with sealed values.
  if (text !== stored) return headers
  const opened: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const plain = sealing.openHeaderValue(endpointId, name, value)
    if (plain === null) return null
    opened[name] = plain
  }
  return opened
}
