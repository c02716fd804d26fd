import { createHmac } from 'node:crypto'
import type { ProviderSettings } from '../../src/domain/model/delivery.ts'
import { startProviderServer, type ProviderCall } from '../helpers/provider-server.ts'

export const authToken = 'f'.repeat(32)

/** What a phone got. */
export type SmsMessage = { to: string; code: string; messageId: string; callbackUrl: string | null }

export type Gateway = ReturnType<typeof startGateway>

/** Settings of a Twilio account whose interface is at this address. */
export const createTwilioSettings = (name: string, baseUrl: string): ProviderSettings => ({
  name,
  kind: 'twilio',
  values: { accountSid: `AC${'0'.repeat(32)}`, authToken, from: '+15005550006', baseUrl },
})

/** As Twilio signs what it posts: the URL, then names and values in the order of the names. */
const sign = (url: string, form: Record<string, string>) =>
  createHmac('sha1', authToken)
    .update(url + Object.entries(form).toSorted().flat().join(''))
    .digest('base64')

/** The call by which Twilio tells what became of a message. */
export function buildReceipt(text: SmsMessage, status: string, errorCode?: number) {
  if (text.callbackUrl === null) throw new Error('nobody asked for receipts')
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

/** Twilio's place: a server that speaks its protocol and keeps every message that it took. */
export function startGateway() {
  const server = startProviderServer()
  const messages: SmsMessage[] = []
  let count = 0

  /** The message is on its way to the phone from here on. */
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
  const handleAccept = (call: ProviderCall) => createdResponse(acceptMessage(call))
  server.setHandler(handleAccept)

  return {
    ...server,
    messages,
    acceptMessage,
    createdResponse,
    acceptAll: () => server.setHandler(handleAccept),
    /** An error of Twilio's. */
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
