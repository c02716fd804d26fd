import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createAppAuthenticator } from '../../../src/auth/app-authenticator.ts'
import type { Credentials } from '../../../src/domain/apps/authentication.ts'
import { joinSecrets, toSid } from '../../../src/shared/sids.ts'
import { requestToken } from '../../helpers/camara-token.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { twilioHeaders } from '../../helpers/twilio-headers.ts'

describeEachDatabase('a caller of a façade', (database) => {
  let service: TestService
  let developer: TestDeveloper
  beforeAll(async () => {
    const env = { ...guardOffEnv, OTPD_COMPAT: 'twilio-verify,camara', OTPD_PHONE_SEND_BUDGET: 'off' }
    service = await createTestService({ plans: unlimitedPlans, env, database: database() })
    developer = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  const phone = '+14155550132'
  const change = (path: string, body: object) =>
    service.request('PATCH', `/v1/applications/${path}`, { as: developer, body })

  /** Calls of both façades: one that reaches its operation, one that fails before it, and reads. */
  async function createCalls(application: TestApplication) {
    const twilio = twilioHeaders(application)
    const camara = {
      authorization: `Bearer ${await requestToken(service, application)}`,
      'content-type': 'application/json',
    }
    const verifications = `/v2/Services/${toSid('VA', application.id)}/Verifications`
    const post = (path: string, headers: Record<string, string>, body: string) => () =>
      service.request('POST', path, { headers, body })
    const get = (path: string) => () => service.request('GET', path, { headers: twilio })
    const send = '/one-time-password-sms/v1/send-code'
    return [
      { status: 201, call: post(verifications, twilio, `To=${encodeURIComponent(phone)}&Channel=sms`) },
      { status: 400, call: post(verifications, twilio, 'To=x&Channel=sms') },
      { status: 400, call: post(`${verifications}/${phone}`, twilio, 'Status=approved') },
      { status: 200, call: get(`${verifications}/${phone}`) },
      { status: 200, call: get('/v2/Services') },
      { status: 404, call: get('/v2/nothing') },
      { status: 200, call: post(send, camara, JSON.stringify({ phoneNumber: phone, message: '{{code}}' })) },
      { status: 400, call: post(send, camara, '{}') },
      { status: 404, call: post('/one-time-password-sms/v1/nothing', camara, '{}') },
    ]
  }

  test('is refused from the first call after its credentials were replaced, on every path', async () => {
    for (const type of ['secret', 'api']) {
      const application = await service.createApplication(developer, { environment: 'test' })
      const calls = await createCalls(application)
      for (const { status, call } of calls) expect((await call()).status).toBe(status)
      await change(application.id, { status: 'disabled' })
      for (const { call } of calls) expect((await call()).status).toBe(403)
      await change(application.id, { status: 'active' })
      for (const { status, call } of calls) expect((await call()).status).toBe(status)
      await service.request('POST', `/v1/applications/${application.id}/rotate/${type}`, { as: developer })
      for (const { call } of calls) {
        const { status, headers } = await call()
        expect([status, headers.get('ratelimit')]).toEqual([401, null])
      }
    }
  })

  test('that was known costs no query before its operation', async () => {
    const application = await service.createApplication(developer)
    let queries = 0
    const { applications } = service.store.read
    const counted = new Proxy(applications, {
      get(target, name) {
        if (name === 'findByApiKeyPreview' || name === 'findSigning') queries++
        return Reflect.get(target, name) as unknown
      },
    })
    const store = { ...service.store, read: { ...service.store.read, applications: counted } }
    const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
    const auth = createAppAuthenticator({ store, keys: testKeys, clock: service.clock, random })
    const { id, clientId, clientSecret, apiKey } = application
    const joinedSecrets = joinSecrets(clientSecret, apiKey)
    const accessToken = auth.issueToken(await auth.authenticate({ clientId, joinedSecrets }))
    const all: Credentials[] = [
      { clientId, clientSecret, apiKey },
      { applicationId: id, joinedSecrets },
      { clientId, joinedSecrets },
      { accessToken },
    ]
    for (const credentials of all) expect((await auth.authenticateForOperation(credentials)).id).toBe(id)
    const before = queries
    for (const credentials of all) expect((await auth.authenticateForOperation(credentials)).id).toBe(id)
    expect(queries).toBe(before)
    // Each form has a cache key of its own.
    for (const credentials of [
      { clientId: id, joinedSecrets },
      { applicationId: clientId, joinedSecrets },
      { clientId: accessToken, clientSecret: id, apiKey: '1' },
      { clientId: 'token', clientSecret: id, apiKey: '1' },
      { applicationId: id, joinedSecrets: '1' },
      { accessToken: joinedSecrets },
    ])
      await expect(async () => auth.authenticateForOperation(credentials)).toThrow(
        expect.objectContaining({ code: 'UNAUTHENTICATED' }),
      )
  })
})

describe('a token', () => {
  test('ends after 300 seconds', async () => {
    const service = await createTestService({ env: { OTPD_COMPAT: 'camara' } })
    const application = await service.createApplication(await service.createDeveloper())
    const token = await requestToken(service, application)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const call = () =>
      service.request('POST', '/one-time-password-sms/v1/validate-code', { headers, body: '{}' })
    expect((await call()).status).toBe(400)
    service.clock.advance(300_000)
    expect((await call()).status).toBe(401)
    await service.dispose()
  })
})
