import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { callbackPath } from '../../../src/domain/otp/callback-tokens.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

const keys = testKeys
const appSecret = 'a'.repeat(32)
const meta = {
  name: 'meta',
  kind: 'whatsapp',
  values: {
    accessToken: 'token',
    phoneNumberId: '12345678',
    template: 'otp_code',
    languages: 'en_US',
    appSecret,
    verifyToken: 'words',
  },
}
const receiptTopicArn = 'arn:aws:sns:eu-central-1:123456789012:otp-receipts'
const aws = {
  name: 'aws',
  kind: 'aws-sms',
  values: {
    region: 'eu-central-1',
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'key',
    receiptTopicArn,
    // Nothing listens there.
    baseUrl: 'http://127.0.0.1:1',
  },
}
const path = callbackPath(keys, 'meta')
let service: TestService

beforeEach(async () => {
  service = await createTestService({ delivery: { providers: [meta, aws], routes: [] } })
})
afterEach(() => service.dispose())

const post = (body: string, headers: Record<string, string> = {}) =>
  service.app.handle(new Request(`http://otpd.test${path}`, { method: 'POST', body, headers }))
const signed = (body: string) => ({
  'content-type': 'application/json',
  'x-hub-signature-256': `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`,
})

describe('a callback', () => {
  test('is accepted in any media type, as its provider signed it', async () => {
    const body = JSON.stringify({ entry: [] })
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'what/ever']) {
      const response = await post(body, { ...signed(body), 'content-type': type })
      expect([response.status, await response.json()]).toEqual([200, { data: { received: true } }])
    }
  })

  test('is rejected if the body is not the signed one', async () => {
    expect((await post('{"entry": []} ', signed('{"entry": []}'))).status).toBe(403)
  })

  test('is 400 if it does not have the format of the provider', async () => {
    expect((await post('[]', signed('[]'))).status).toBe(400)
  })

  test('is 503 if its signature cannot be checked now, so that its provider repeats it', async () => {
    const body = {
      Type: 'Notification',
      TopicArn: receiptTopicArn,
      Message: '{}',
      Timestamp: new Date(service.clock.now()).toISOString(),
      SigningCertURL: 'http://127.0.0.1:1/SimpleNotificationService-1.pem',
    }
    const response = await service.request('POST', callbackPath(keys, 'aws'), { body })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '10'])
  })

  test('is rejected over 64 KiB', async () => {
    const body = 'x'.repeat(64 * 1024 + 1)
    expect((await post(body, signed(body))).status).toBe(413)
  })

  test('may verify the URL, and gets its challenge as plain text', async () => {
    const ask = (token: string) =>
      service.app.handle(
        new Request(
          `http://otpd.test${path}?hub.mode=subscribe&hub.challenge=8421&hub.verify_token=${token}`,
        ),
      )
    const right = await ask('words')
    expect([right.status, await right.text()]).toEqual([200, '8421'])
    expect(right.headers.get('content-type')).toStartWith('text/plain')
    expect((await ask('others')).status).toBe(403)
  })

  test('supports only POST and GET', async () => {
    const { status, headers } = await service.request('PUT', path, { body: {} })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  })
})
