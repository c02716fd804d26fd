import type { WebhookDelivery, WebhookEndpoint } from '../client/resources.ts'

export type Fault = NonNullable<WebhookDelivery['lastError']>

/** What went wrong, for people. */
const faults = {
  blocked_address: 'the address is not a public one',
  dns: 'the name of the host was not found',
  connect: 'no connection could be made',
  tls: 'no TLS connection could be made: is the certificate right?',
  timeout: 'no answer came in time',
  reset: 'the connection was cut',
  redirect: 'it answered with a redirect, and these are not followed',
  bad_status: 'only 200 to 299 says that an event was taken',
} as const satisfies Record<Fault, string>

/** Where a status came, it says itself what was wrong. */
export const faultForStatus = (statusCode: number): Fault =>
  statusCode >= 300 && statusCode < 400 ? 'redirect' : 'bad_status'

export const faultText = (fault: Fault) =>
  `${faults[fault].charAt(0).toUpperCase()}${faults[fault].slice(1)}.`

/** `503`, `timeout`, or nothing where nothing was tried yet. */
export const resultText = (statusCode: number | null, error: Fault | null) =>
  statusCode === null ? (error ?? '').replaceAll('_', ' ') : String(statusCode)

/** Which events an endpoint is told of. */
export const eventsText = ({ events }: Pick<WebhookEndpoint, 'events'>) =>
  events.includes('*') ? 'all' : events.join(', ')
