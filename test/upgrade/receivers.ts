import { createHmac, timingSafeEqual } from 'node:crypto'
import { textAt, valueAt, type Json } from './json.ts'

export type Received = { path: string; id: string; timestamp: string; signature: string; body: string }

export type Receivers = ReturnType<typeof startReceivers>

/** Fictional British numbers. The gateway responds differently to each. */
export const gatewayPhones = {
  accepted: '+447700900101',
  receiptDelivered: '+447700900102',
  receiptUndelivered: '+447700900103',
  refused: '+447700900104',
  unknown: '+447700900105',
  queued: '+447700900106',
}

/** Starts a webhook receiver, and an SMS gateway under `/sms`. The path of a webhook URL selects the status. */
export function startReceivers(hostname = '127.0.0.1') {
  const received: Received[] = []
  const messages = new Map<string, { code: string; callbackUrl: string }>()
  const seen = new Set<string>()

  const webhookStatus = ({ path, id }: Received) => {
    if (path === '/down') return 503
    if (path === '/gone') return 410
    if (path !== '/flaky' || seen.has(id)) return 200
    seen.add(id)
    return 500
  }

  const server = Bun.serve({
    hostname,
    port: 0,
    async fetch(request) {
      const header = (name: string) => request.headers.get(`webhook-${name}`) ?? ''
      const webhook = {
        path: new URL(request.url).pathname,
        id: header('id'),
        timestamp: header('timestamp'),
        signature: header('signature'),
        body: await request.text(),
      }
      if (webhook.path === '/sms') return answerMessage(JSON.parse(webhook.body) as Json)
      received.push(webhook)
      const status = webhookStatus(webhook)
      return new Response(`status ${status}`, { status })
    },
  })

  function answerMessage(body: Json): Response {
    const requestId = textAt(body, 'data', 'requestId')
    const callbackUrl = valueAt(body, 'data', 'callbackUrl')
    messages.set(requestId, {
      code: textAt(body, 'data', 'code'),
      callbackUrl: typeof callbackUrl === 'string' ? callbackUrl : '',
    })
    const phone = textAt(body, 'data', 'phone')
    if (phone === gatewayPhones.refused) return Response.json({ reason: 'invalid_number' }, { status: 422 })
    if (phone === gatewayPhones.unknown) return new Response('', { status: 504 })
    if (phone === gatewayPhones.queued) return new Response('', { status: 503 })
    return Response.json({ messageId: `gw-${requestId}` })
  }

  const url = `http://${hostname}:${server.port}`
  return {
    url,
    gatewayUrl: `${url}/sms`,
    received,
    /** Messages that reached the gateway, by request. */
    messages,
    stop: () => server.stop(true),
  }
}

/** Computes a signature by Standard Webhooks 1.0, independently of the code under test. */
export const signWebhook = (secret: string, { id, timestamp, body }: Omit<Received, 'path' | 'signature'>) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64')}`

/** Returns whether a received webhook was signed with the secret. */
export function isSignedWith(secret: string, webhook: Received): boolean {
  const expected = Buffer.from(signWebhook(secret, webhook))
  const signature = Buffer.from(webhook.signature)
  return expected.length === signature.length && timingSafeEqual(expected, signature)
}
