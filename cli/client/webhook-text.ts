import type { WebhookDelivery, WebhookDeliveryDetail, WebhookEndpoint } from './resources.ts'

export type Fault = NonNullable<WebhookDelivery['lastError']>

/** Delivery errors, for people. */
const faults = {
  blocked_address: 'the address is not public',
  blocked_port: 'the port is not one that webhooks may use',
  dns: 'the host name was not found',
  connect: 'the connection failed',
  tls: 'the TLS connection failed; check the certificate',
  timeout: 'the endpoint did not respond in time',
  reset: 'the connection was reset',
  redirect: 'the endpoint sent a redirect, and redirects are not followed',
  unreadable: 'the server cannot decrypt the stored event, headers or signing secret',
  bad_status: 'only 200 to 299 counts as delivered',
} as const satisfies Record<Fault, string>

/** Derives the fault from an HTTP status that was not 200 to 299. */
export const faultForStatus = (statusCode: number): Fault =>
  statusCode >= 300 && statusCode < 400 ? 'redirect' : 'bad_status'

/** Formats a fault as a sentence. */
export const faultText = (fault: Fault) =>
  `${faults[fault].charAt(0).toUpperCase()}${faults[fault].slice(1)}.`

/** Formats the result of an attempt: `503`, `timeout`, or nothing before the first attempt. */
export const resultText = (statusCode: number | null, error: Fault | null) =>
  statusCode === null ? (error ?? '').replaceAll('_', ' ') : String(statusCode)

/** Formats the event types that an endpoint receives. */
export const eventsText = ({ events }: Pick<WebhookEndpoint, 'events'>) =>
  events.includes('*') ? 'all' : events.join(', ')

export type SentRequest = NonNullable<WebhookDeliveryDetail['request']>

/**
 * Formats a request as it was sent, with its JSON body indented.
 *
 * @param formatPhone masks the phone number of the event
 */
export function requestLines({ url, headers, body }: SentRequest, formatPhone: (phone: string) => string) {
  const headerLines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`POST ${url}`, ...headerLines, '', ...bodyLines(body, formatPhone)]
}

function bodyLines(body: string | null, formatPhone: (phone: string) => string): string[] {
  if (body === null) return ['The body was deleted, or cannot be decrypted.']
  const format = (key: string, value: unknown) =>
    key === 'phone' && typeof value === 'string' ? formatPhone(value) : value
  return JSON.stringify(JSON.parse(body, format), null, 2).split('\n')
}
