import { WebhookVerifyError } from './errors.ts'

export type WebhookEventType =
  | 'otp.sent'
  | 'otp.delivered'
  | 'otp.undelivered'
  | 'otp.verified'
  | 'otp.failed'
  | 'otp.expired'
  | 'otp.canceled'
  | 'otp.blocked'
  | 'session.verified'
  | 'guard.alert'
  | 'message.sent'
  | 'message.delivered'
  | 'message.undelivered'

/** An event, as `webhooks.verify` returns it. Later versions may add types. */
export type WebhookEvent = {
  id: string
  type: WebhookEventType | (string & {})
  timestamp: string
  data: Record<string, unknown> & {
    requestId?: string
    messageId?: string
    sessionId?: string
    phone?: string
    status?: string
  }
}

type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

const toleranceSeconds = 300

/**
 * Checks that a webhook is genuine and new (Standard Webhooks), in constant time.
 *
 * @param body as received, not parsed
 * @param secret webhook secret of the application, `whsec_…`
 * @throws WebhookVerifyError if it is not; TypeError if the body was parsed, or the secret has the wrong form
 */
export async function verifyWebhook(
  body: string,
  headers: WebhookHeaders,
  secret: string,
): Promise<WebhookEvent> {
  const read = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name]
    return typeof value === 'string' ? value : ''
  }
  if (typeof body !== 'string')
    throw new TypeError('Pass the body as received, a string that was not parsed.')
  const [id, timestamp] = [read('webhook-id'), read('webhook-timestamp')]
  const isRecent = Math.abs(Date.now() / 1000 - Number(timestamp || NaN)) <= toleranceSeconds
  const key = await importKey(secret)
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  for (const signature of read('webhook-signature').split(' ')) {
    const mac = signature.startsWith('v1,') ? decode(signature.slice(3)) : undefined
    const isGenuine = mac && (await crypto.subtle.verify('HMAC', key, mac, signed))
    if (isGenuine && isRecent) return JSON.parse(body) as WebhookEvent
  }
  throw new WebhookVerifyError('The webhook is not genuine, or older than five minutes.')
}

function importKey(secret: string) {
  // JavaScript calls it with an environment variable that is not set.
  const key = typeof secret === 'string' ? decode(secret.replace(/^whsec_/, '')) : undefined
  if (!key) throw new TypeError('The webhook secret has the wrong form: expected whsec_…')
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

function decode(base64: string) {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
