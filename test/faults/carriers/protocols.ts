import { createHmac } from 'node:crypto'
import { parseJson, textAt } from '../../../src/delivery/kit/json.ts'
import { formatPrice } from '../../../src/domain/model/price.ts'
import type { Protocol } from './vendor.ts'

const readCode = (text: string | null | undefined) => /\d{6}/.exec(text ?? '')?.[0] ?? ''
const secretName = 'OTPD_SECRET_VENDOR'
const secret = 'f'.repeat(32)
/** Variables of the nodes. */
export const secretEnv = { [secretName]: secret }

const jsonHeaders = { 'content-type': 'application/json' }
const formHeaders = { 'content-type': 'application/x-www-form-urlencoded' }

/** Infobip: the receipt names the price, and verified codes are reported as conversions. */
export const infobipProtocol: Protocol = {
  kind: 'infobip',
  settings: (url) => ({ baseUrl: url, apiKeyEnv: secretName, from: 'Acme' }),
  modes: ['fails', 'throttles', 'loses', 'lies', 'cuts'],
  readMessage({ path, body }) {
    if (path !== '/sms/3/messages') return undefined
    const message = ['messages', 0] as const
    const json = parseJson(body)
    return {
      to: `+${textAt(json, ...message, 'destinations', 0, 'to')}`,
      code: readCode(textAt(json, ...message, 'content', 'text')),
      requestId: textAt(json, ...message, 'webhooks', 'callbackData') ?? null,
      callbackUrl: textAt(json, ...message, 'webhooks', 'delivery', 'url') ?? null,
    }
  },
  accept: ({ messageId }) => Response.json({ messages: [{ messageId, status: { groupId: 1, id: 26 } }] }),
  refuse: (mode) => Response.json({}, { status: mode === 'fails' ? 503 : 429 }),
  respond({ path }, find) {
    const item = find(path.split('/').at(-1) ?? '')
    item?.outcomes.add('converted')
    return new Response(null, { status: item ? 200 : 404 })
  },
  receipt({ messageId, requestId, price }, isArrived) {
    const status = isArrived ? { groupId: 3, id: 5 } : { groupId: 2, id: 9 }
    const charge = { pricePerMessage: price / 1e6, currency: 'EUR' }
    const result = { messageId, callbackData: requestId, status, smsCount: 1, price: charge }
    return { method: 'POST', headers: jsonHeaders, body: JSON.stringify({ results: [result] }) }
  },
  outcomes: { verified: 'converted', other: null },
}

/** Vonage: the response names the price, and every outcome is reported. */
export const vonageProtocol: Protocol = {
  kind: 'vonage-sms',
  settings: (url) => ({ baseUrl: url, apiKey: 'key', apiSecretEnv: secretName, from: 'Acme' }),
  modes: ['fails', 'throttles', 'loses', 'lies'],
  readMessage({ path, body }) {
    if (path !== '/sms/json') return undefined
    const form = new URLSearchParams(body)
    return {
      to: `+${form.get('to')}`,
      code: readCode(form.get('text')),
      requestId: form.get('client-ref'),
      callbackUrl: form.get('callback'),
    }
  },
  accept: ({ messageId, price }) =>
    Response.json({
      messages: [{ status: '0', 'message-id': messageId, 'message-price': formatPrice(price) }],
    }),
  refuse: (mode) => Response.json({ messages: [{ status: mode === 'fails' ? '5' : '1' }] }),
  respond({ path }, find) {
    const query = new URL(path, 'http://vendor').searchParams
    const item = find(query.get('message-id') ?? '')
    item?.outcomes.add(query.get('delivered') === 'true' ? 'used' : 'unused')
    return new Response(null, { status: item ? 200 : 420 })
  },
  receipt({ messageId, requestId, price }, isArrived) {
    const body = new URLSearchParams({
      messageId,
      'client-ref': requestId ?? '',
      status: isArrived ? 'delivered' : 'failed',
      'err-code': isArrived ? '0' : '1',
      price: formatPrice(price),
    })
    return { method: 'POST', headers: formHeaders, body: body.toString() }
  },
  outcomes: { verified: 'used', other: 'unused' },
}

/** Twilio sets the price of a message some time after its final status. */
const priceDelayMs = 500

/** Twilio: the price must be looked up, and verified codes are reported as feedback. */
export const twilioProtocol: Protocol = {
  kind: 'twilio',
  settings: (url) => ({
    baseUrl: url,
    accountSid: `AC${'0'.repeat(32)}`,
    authTokenEnv: secretName,
    from: '+15005550006',
  }),
  modes: ['fails', 'throttles', 'loses', 'lies', 'cuts'],
  readMessage({ path, body }) {
    if (!path.endsWith('/Messages.json')) return undefined
    const form = new URLSearchParams(body)
    const callbackUrl = form.get('StatusCallback')
    const requestId = callbackUrl === null ? null : new URL(callbackUrl).searchParams.get('request')
    return { to: form.get('To') ?? '', code: readCode(form.get('Body')), requestId, callbackUrl }
  },
  accept: ({ messageId }) => Response.json({ sid: messageId, status: 'queued' }, { status: 201 }),
  refuse: (mode) =>
    Response.json({ code: mode === 'fails' ? 20_500 : 20_429 }, { status: mode === 'fails' ? 503 : 429 }),
  respond({ path, method }, find) {
    const item = find(/SM[0-9a-f]{32}/.exec(path)?.[0] ?? '')
    if (!item) return Response.json({ code: 20_404 }, { status: 404 })
    if (method === 'GET') {
      const price = Date.now() - item.takenAt < priceDelayMs ? null : `-${formatPrice(item.price)}`
      return Response.json({ sid: item.messageId, status: 'delivered', price, price_unit: 'EUR' })
    }
    item.outcomes.add('confirmed')
    return new Response(null, { status: 201 })
  },
  receipt({ messageId, callbackUrl }, isArrived) {
    // In the order of their names, as they are signed.
    const form = {
      ...(!isArrived && { ErrorCode: '30008' }),
      MessageSid: messageId,
      MessageStatus: isArrived ? 'delivered' : 'undelivered',
    }
    const signature = createHmac('sha1', secret)
      .update(`${callbackUrl}${Object.entries(form).flat().join('')}`)
      .digest('base64')
    const headers = { ...formHeaders, 'x-twilio-signature': signature }
    return { method: 'POST', headers, body: new URLSearchParams(form).toString() }
  },
  outcomes: { verified: 'confirmed', other: null },
}
