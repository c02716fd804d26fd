import { createHmac } from 'node:crypto'
import type { ProviderSettings } from '../../src/domain/model/delivery.ts'
import { startProviderServer, type ProviderCall } from '../helpers/provider-server.ts'

export const authToken = 'f'.repeat(32)

/** What a phone got. */
export type Text = { to: string; code: string; messageId: string; callbackUrl: string | null }

export type Gateway = ReturnType<typeof startGateway>

/** Settings of a Twilio account whose interface is at this address. */
export const twilioAt = (name: string, baseUrl: string): ProviderSettings => ({
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
export function receiptOf(text: Text, status: string, errorCode?: number) {
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
  const texts: Text[] = []
  let count = 0

  /** The message is on its way to the phone from here on. */
  function take({ body }: ProviderCall): Text {
    const form = new URLSearchParams(body)
    const text = {
      to: form.get('To') ?? '',
      code: /\d{6}/.exec(form.get('Body') ?? '')?.[0] ?? '',
      messageId: `SM${String(++count).padStart(32, '0')}`,
      callbackUrl: form.get('StatusCallback'),
    }
    texts.push(text)
    return text
  }
  const created = ({ messageId }: Text) =>
    Response.json({ sid: messageId, status: 'queued' }, { status: 201 })
  const accept = (call: ProviderCall) => created(take(call))
  server.answersWith(accept)

  return {
    ...server,
    texts,
    take,
    created,
    accepts: () => server.answersWith(accept),
    /** An error of Twilio's. */
    refuses: (status: number, code: number, headers: Record<string, string> = {}) =>
      server.answers(status, { code, message: 'no', status }, headers),
  }
}
