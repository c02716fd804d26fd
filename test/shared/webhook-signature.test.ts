import { describe, expect, test } from 'bun:test'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { signatureHeaders, signWebhook } from '../../src/shared/webhook-signature.ts'

const secret = 'whsec_0123456789abcdef0123456789abcdef0123456789abcdef'

describe('a signature', () => {
  test('matches the published test vector', () => {
    const signature = 'v1,YForqA5y0HLhU/b+46qmStvR80u6DaHHtk9wY/o80/Y='
    const message = { id: 'msg_1', timestamp: '1700000000', body: '{"a":1}' }
    expect(signWebhook(secret, message)).toBe(signature)
    expect(signatureHeaders(secret, message, 1_700_000_000_999)).toEqual({
      'webhook-id': 'msg_1',
      'webhook-timestamp': '1700000000',
      'webhook-signature': signature,
    })
  })

  test('is valid only for this body, id and secret', () => {
    const signed = { id: 'evt_1', body: '{"a":1}' }
    const headers = signatureHeaders(secret, signed, Date.now())
    const verify = (body: string, changed = {}, key = secret) =>
      new Webhook(key).verify(body, { ...headers, ...changed })
    expect(() => verify('{"a": 1}')).toThrow(WebhookVerificationError)
    expect(() => verify('{"a":1}', { 'webhook-id': 'evt_2' })).toThrow(WebhookVerificationError)
    expect(() => verify('{"a":1}', {}, secret.replace('0123', '3210'))).toThrow(WebhookVerificationError)
    expect(verify('{"a":1}')).toEqual({ a: 1 })
  })
})
