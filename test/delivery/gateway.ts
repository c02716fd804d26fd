import { createHmac } from 'node:crypto'
import type { ProviderSettings } from '../../src/domain/model/delivery.ts'
import { startProviderServer, type ProviderCall } from '../helpers/provider-server.ts'

export const authToken = 'f'.repeat(32)

/** A message that a phone received. */
export type SmsMessage = { to: string; code: string; messageId: string; callbackUrl: string | null }

export type Gateway = ReturnType<typeof startGateway>

/** Settings of a Twilio account whose API has this base URL. */
export const createTwilioSettings = (name: string, baseUrl: string): ProviderSettings => ({
  name,
  kind: 'twilio',
  values: { accountSid: `AC${'0'.repeat(32)}`, authToken, from: '+15005550006', baseUrl },
})

/** Twilio's callback signature: over the URL, then names and values sorted by name. */
const sign = (url: string, form: Record<string, string>) =>
  createHmac('sha1', authToken)
    .update(url + Object.entries(form).toSorted().flat().join(''))
    .digest('base64')

/** The callback with which Twilio reports the status of a message. */
export function buildReceipt(text: SmsMessage, status: string, errorCode?: number) {
  if (text.callbackUrl === null) throw new Error('the message requested no receipts')
  const form = {
    MessageSid: text.messageId,
    MessageStatus: status,
    ...(errorCode !== undefined && { ErrorCode: String(errorCode) }),
  }
  return {
    url: text.callbackUrl,
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'x-twilio-signature': sign(text.callbackUrl, form),
    },
    body: new URLSearchParams(form).toString(),
  }
}

/** Starts a fake Twilio: a server that speaks its protocol and keeps every accepted message. */
export function startGateway() {
  const server = startProviderServer()
  const messages: SmsMessage[] = []
  let count = 0

  /** Accepts the message: from now on it counts as sent to the phone. */
  function acceptMessage({ body }: ProviderCall): SmsMessage {
    const form = new URLSearchParams(body)
    const text = {
      to: form.get('To') ?? '',
      code: /\d{6}/.exec(form.get('Body') ?? '')?.[0] ?? '',
      messageId: `SM${String(++count).padStart(32, '0')}`,
      callbackUrl: form.get('StatusCallback'),
    }
    messages.push(text)
    return text
  }
  const createdResponse = ({ messageId }: SmsMessage) =>
    Response.json({ sid: messageId, status: 'queued' }, { status: 201 })
  let price: string | null = null
  let currency = 'EUR'
  const handleAccept = (call: ProviderCall) => {
    // A report of how a request ended is no message, and neither is a look-up of the price.
    if (call.path.endsWith('/Feedback.json')) return new Response(null, { status: 201 })
    if (call.method === 'GET') return Response.json({ status: 'delivered', price, price_unit: currency })
    return createdResponse(acceptMessage(call))
  }
  server.setHandler(handleAccept)

  return {
    ...server,
    messages,
    acceptMessage,
    createdResponse,
    /** Names the price of all messages from now on, as a negative number like Twilio. */
    setPrice(next: string, nextCurrency = 'EUR') {
      price = next
      currency = nextCurrency
    },
    acceptAll: () => server.setHandler(handleAccept),
    /** Responds to every message with a Twilio error. */
    refuseAll: (status: number, code: number, headers: Record<string, string> = {}) =>
      server.setResponse(status, { code, message: 'no', status }, headers),
  }
}

/**
 * The log lines that name a request, each as its message, provider, failure class and the provider's own
 * code.
 */
export const findLogLines = (log: string, requestId: string) =>
  log
    .split('\n')
    .filter((line) => line.includes(requestId))
    .map((line) => {
      const { msg, provider, failure, providerCode }: Record<string, string | null> = JSON.parse(line)
      return [msg, provider, failure, providerCode]
        .filter((part) => part !== undefined && part !== null)
        .join(' ')
    })
