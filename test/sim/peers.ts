import type { PeerRequest, PeerResponse } from './network.ts'
import type { Chance } from './chance.ts'

export type SentMessage = {
  requestId: string
  phone: string
  code: string
  text: string
  messageId: string
  provider: string
  callbackPath: string | null
}

/** An SMS provider that speaks the protocol of the kind `http`. */
export function createSimulatedProvider(
  name: string,
  chance: Chance,
  onMessage: (message: SentMessage) => void,
) {
  let fault: 'none' | 'errors' | 'lies' = 'none'
  let count = 0
  return {
    setFault: (changed: typeof fault) => void (fault = changed),
    peer({ body }: PeerRequest): PeerResponse {
      const { data } = JSON.parse(body) as {
        data: { requestId: string; phone: string; code: string; text: string; callbackUrl: string | null }
      }
      const messageId = `${name}-${++count}`
      const { requestId, phone, code, text, callbackUrl } = data
      const callbackPath = callbackUrl === null ? null : new URL(callbackUrl).pathname
      if (fault === 'errors' && chance.happens(0.7))
        return chance.choose([
          { status: 503, body: 'try later' },
          { status: 429, headers: { 'retry-after': '2' }, body: '{}' },
          { status: 422, body: '{"reason":"no_credit"}' },
          { status: 200, body: 'not JSON' },
        ])
      // A provider that has sent the message, and says that it has not.
      onMessage({ requestId, phone, code, text, messageId, provider: name, callbackPath })
      if (fault === 'lies' && chance.happens(0.3)) return { status: 500, body: 'failed' }
      return { status: 202, body: JSON.stringify({ messageId }) }
    },
  }
}

export type ReceivedEvent = { id: string; type: string; requestId: string | null; body: string }

/** A receiver of webhooks. */
export function createReceiver(chance: Chance, onEvent: (event: ReceivedEvent) => void) {
  let isFailing = false
  return {
    setFailing: (changed: boolean) => void (isFailing = changed),
    peer({ headers, body }: PeerRequest): PeerResponse {
      if (isFailing && chance.happens(0.8)) return { status: chance.choose([500, 503, 404]), body: 'no' }
      const event = JSON.parse(body) as { type: string; data?: { requestId?: string } }
      const requestId = event.data?.requestId ?? null
      onEvent({ id: headers['webhook-id'] ?? '', type: event.type, requestId, body })
      return { status: 200, body: 'ok' }
    },
  }
}
