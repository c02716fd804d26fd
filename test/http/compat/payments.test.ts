import { afterAll, beforeAll, expect, test } from 'bun:test'
import { idToHex, toSid } from '../../../src/shared/sids.ts'
import { requestToken } from '../../helpers/camara-token.ts'
import { createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../../helpers/service.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'

// Façades have no place for amount and payee: they never send or verify the code of a payment.

const payment = { amount: '9.99 EUR', payee: 'Ada Books' }
let service: TestService
let app: TestApplication
let sent: { requestId: string; code?: string }
beforeAll(async () => {
  const env = { ...guardOffEnv, OTPD_COMPAT: 'camara,twilio-verify', OTPD_PHONE_SEND_BUDGET: 'off' }
  service = await createTestService({ plans: unlimitedPlans, env })
  const ada = await service.createDeveloper()
  app = await service.createApplication(ada, { environment: 'test' })
  await service.request('PUT', `/v1/applications/${app.id}/templates/payment`, {
    as: ada,
    body: { texts: { en: '{code}: {amount} to {payee}' } },
  })
  sent = await createOtpClient(service).sendOrThrow(app, { template: 'payment', variables: payment })
})
afterAll(() => service.dispose())

const twilio = async (resource: string, fields: Record<string, string>) => {
  const path = `/v2/Services/${toSid('VA', app.id)}/${resource}`
  const body = new URLSearchParams(fields).toString()
  const { status, text } = await service.request('POST', path, { headers: twilioHeaders(app), body })
  return { status, body: JSON.parse(text) as Record<string, unknown> }
}

test('CAMARA refuses the right code of a payment as a wrong one', async () => {
  const headers = {
    authorization: `Bearer ${await requestToken(service, app)}`,
    'content-type': 'application/json',
  }
  const hex = idToHex(sent.requestId)
  const authenticationId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  const { status, text } = await service.request('POST', '/one-time-password-sms/v1/validate-code', {
    headers,
    body: { authenticationId, code: sent.code },
  })
  expect([status, JSON.parse(text).code]).toEqual([400, 'ONE_TIME_PASSWORD_SMS.INVALID_OTP'])
})

test('Twilio Verify refuses amount and payee, and does not approve the code of a payment', async () => {
  for (const field of ['Amount', 'Payee']) {
    const { status, body } = await twilio('Verifications', {
      To: '+14155552671',
      Channel: 'sms',
      [field]: '9.99',
    })
    expect([status, body['code']]).toEqual([400, 60200])
  }
  const checks = [{ VerificationSid: toSid('VE', sent.requestId) }, { To: '+14155552671' }]
  for (const target of checks) {
    const { body } = await twilio('VerificationCheck', { ...target, Code: sent.code ?? '' } as Record<
      string,
      string
    >)
    expect(body['status']).not.toBe('approved')
  }
  const right = await service.request('POST', '/v1/otp/verify', {
    as: app,
    body: { requestId: sent.requestId, code: sent.code, variables: payment },
  })
  expect(right.status).toBe(200)
})
