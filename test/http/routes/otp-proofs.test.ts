import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { generateKeyPair, SignJWT } from 'jose'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlan, unlimitedPlans } from '../../helpers/plans.ts'
import { readOpened } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
import { testWorld } from '../../helpers/world.ts'

type Verified = { requestId: string; status: string; phone: string; verifiedAt: string }

let service: TestService
let owner: TestDeveloper
let application: TestApplication
beforeAll(async () => {
  service = await createTestService({ plans: unlimitedPlans, env: { ...guardOffEnv, OTPD_DEV: 'true' } })
  owner = await service.createDeveloper()
  application = await service.createApplication(owner)
})
afterAll(() => service.dispose())

let phones = 0
const newPhone = () => `+1415555${4000 + phones++}`
const issue = (phone: string, nonce?: string, from = service) => {
  if (!from.services.testProofs) throw new Error('the server is not in development mode')
  return from.services.testProofs.issue({ phone, nonce })
}
const prove = (body: object, headers: Record<string, string> = {}, as = application, by = service) =>
  by.request<Verified>('POST', '/v1/otp/proofs', { as, headers, body: { type: 'firebase-pnv', ...body } })
const now = () => new Date(service.clock.now()).toISOString()

describe('POST /v1/otp/proofs', () => {
  test('makes a verified request, as a right code does', async () => {
    const phone = newPhone()
    const metadata = { order: '4711' }
    const { status, data } = await prove({
      token: await issue(phone),
      phone,
      metadata,
      clientIp: '203.0.113.7',
    })
    expect(status).toBe(201)
    expect(data).toEqual({ requestId: data.requestId, status: 'verified', phone, verifiedAt: now() })

    const { data: request } = await service.request(`GET`, `/v1/otp/${data.requestId}`, { as: owner })
    expect(request).toMatchObject({
      status: 'verified',
      channel: 'silent',
      provider: null,
      phone,
      country: 'US',
      attempts: 0,
      verifiedAt: now(),
    })
    const events = await service.request<{ type: string }[]>('GET', `/v1/otp/${data.requestId}/events`, {
      as: owner,
    })
    expect(events.data.map(({ type }) => type)).toEqual(['otp.verified'])
    const user = await service.request('GET', `/v1/users/${encodeURIComponent(phone)}`, { as: owner })
    expect(user.data).toMatchObject({ phone, verificationCount: 1 })
    const listed = await service.request<{ id: string }[]>(
      'GET',
      `/v1/otp?phone=${encodeURIComponent(phone)}`,
      { as: owner },
    )
    expect(listed.data.map(({ id }) => id)).toEqual([data.requestId])
  })

  test('sends the traceparent of the call to webhooks', async () => {
    const app = await service.createApplication(owner)
    const events = ['otp.verified']
    const webhook = { appId: app.id, url: 'https://shop.example/hook', events }
    await service.request('POST', '/v1/webhooks', { as: owner, body: webhook })
    const traceparent = `00-${'4b'.repeat(16)}-${'00f0'.repeat(4)}-01`
    const { data } = await prove({ token: await issue(newPhone()) }, { traceparent }, app)
    await prove({ token: await issue(newPhone()) }, {}, app)
    const payloads = (await readOpened(service.database, 'events'))
      .filter(({ appId }) => appId === app.id)
      .map(({ payload }) => JSON.parse(String(payload)))
    expect(payloads.map((event) => [event.data.requestId === data.requestId, event.traceparent])).toEqual([
      [true, traceparent],
      [false, undefined],
    ])
  })

  test('counts as a request and a verification, not as a message', async () => {
    const developer = await service.createDeveloper()
    const app = await service.createApplication(developer)
    await prove({ token: await issue(newPhone()) }, {}, app)
    const summary = await service.request('GET', '/v1/analytics/summary', { as: developer })
    expect(summary.data).toMatchObject({ otpRequests: 1, otpVerified: 1, successRate: 100, activeUsers: 1 })
    const breakdown = await service.request('GET', '/v1/analytics/breakdown?by=channel', { as: developer })
    expect(breakdown.data).toMatchObject([{ key: 'silent', sent: 0, verified: 1 }])
  })

  test('takes a token once, in any application of any developer', async () => {
    const token = await issue(newPhone())
    expect((await prove({ token })).status).toBe(201)
    const other = await service.createApplication(await service.createDeveloper())
    for (const app of [application, other]) {
      const { status, error, text } = await prove({ token }, {}, app)
      expect([status, error.code, error.reason]).toEqual([400, 'PROOF_REJECTED', 'PROOF_REUSED'])
      expect(text).not.toContain(token.slice(-20))
    }
    // Also a moment before it expires, after retention has run.
    service.clock.advance(3_600_000 - 1)
    expect((await prove({ token })).error.reason).toBe('PROOF_REUSED')
  })

  test('of 100 replays none is accepted', async () => {
    const token = await issue(newPhone())
    expect((await prove({ token })).status).toBe(201)
    const outcomes = new Set<string | undefined>()
    for (let n = 0; n < 100; n++) outcomes.add((await prove({ token })).error?.reason)
    expect([...outcomes]).toEqual(['PROOF_REUSED'])
  })

  test('replays its answer under an idempotency key, also after the token has expired', async () => {
    const body = { token: await issue(newPhone()) }
    const key = { 'idempotency-key': 'p1' }
    const first = await prove(body, key)
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null])
    service.clock.advance(2 * 3_600_000)
    const again = await prove(body, key)
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true'])
    expect(again.data).toEqual(first.data)
    expect((await prove({ token: await issue(newPhone()) }, key)).error.code).toBe('IDEMPOTENCY_KEY_REUSED')
  })

  test('leaves the idempotency key of a refused token free', async () => {
    const token = await issue(newPhone())
    expect((await prove({ token: 'x.y.z' }, { 'idempotency-key': 'p2' })).error.reason).toBe(
      'PROOF_MALFORMED',
    )
    expect((await prove({ token }, { 'idempotency-key': 'p2' })).status).toBe(201)
  })

  test('refuses another phone or nonce than the call names, and the token stays good', async () => {
    const phone = '+5491123456789'
    const token = await issue(phone, 'n1')
    expect((await prove({ token, phone: '+14155550100' })).error.reason).toBe('PROOF_PHONE')
    expect((await prove({ token, nonce: 'n2' })).error.reason).toBe('PROOF_NONCE')
    expect((await prove({ token, phone: 'x' })).error.code).toBe('INVALID_PHONE_NUMBER')
    // The same subscriber, as written without the 9.
    expect((await prove({ token, phone: '+541123456789', nonce: 'n1' })).data.phone).toBe(phone)
  })

  test('refuses a token of a number that is none, or virtual', async () => {
    for (const phone of ['', '14155550100', '+1', 'hello', owner.developer.id, '+999123456789'])
      expect([phone, (await prove({ token: await issue(phone) })).error.reason]).toEqual([
        phone,
        'PROOF_MALFORMED',
      ])
  })

  test('makes the device of the proof known, so that a code of a stranger has another budget', async () => {
    const phone = newPhone()
    await prove({ token: await issue(phone), deviceId: 'd1' })
    const found = await service.services.identities.getByPhone(owner.developer.id, phone)
    expect(found.verificationCount).toBe(1)
    const send = await service.request<{ requestId: string }>('POST', '/v1/otp/send', {
      as: application,
      body: { phone, deviceId: 'd1' },
    })
    expect(await service.store.read.otpRequests.find(send.data.requestId)).toMatchObject({
      startedBy: 'known',
    })
  })

  test('cannot be verified, resent or canceled again', async () => {
    const { data } = await prove({ token: await issue(newPhone()) })
    const { requestId } = data
    for (const [path, body] of [
      ['verify', { requestId, code: '000000' }],
      ['resend', { requestId }],
      ['cancel', { requestId }],
    ] as const)
      expect([
        path,
        (await service.request('POST', `/v1/otp/${path}`, { as: application, body })).error.code,
      ]).toEqual([path, 'ALREADY_VERIFIED'])
  })

  test.each([
    ['a missing token', { token: undefined }],
    ['an unknown type', { type: 'firebase', token: 'x' }],
    ['a token that is too long', { token: 'x'.repeat(8193) }],
    ['an unknown field', { token: 'x', code: '123456' }],
    ['a nonce that is empty', { token: 'x', nonce: '' }],
  ])('refuses %s', async (_, body) => {
    expect((await prove(body)).error.code).toBe('INVALID_ARGUMENT')
  })
})

describeEachDatabase('a proof, to the guard', (database) => {
  test('makes its phone evidence, and takes that of no other phone away', async () => {
    const env = { OTPD_GUARD_MODE: 'enforce', OTPD_DEV: 'true' }
    const guarded = await createTestService({ database: database(), plans: unlimitedPlans, env })
    const otp = createOtpClient(guarded)
    const developer = await guarded.createDeveloper()
    const app = await guarded.createApplication(developer)
    const clientIp = '203.0.113.7'
    const readEvidence = async () => {
      const { data } = await guarded.request<{ allowances: unknown[] }>('GET', '/v1/guard', { as: developer })
      return data.allowances
    }
    const verify = async (phone: string) => {
      const { requestId } = await otp.sendOrThrow(app, { phone, clientIp })
      expect((await otp.verifyRightCode(app, requestId)).status).toBe(200)
    }
    const [proved, other] = [newPhone(), newPhone()]
    const proveOnce = async () => {
      const token = await issue(proved, undefined, guarded)
      expect((await prove({ token, clientIp }, {}, app, guarded)).status).toBe(201)
    }
    await proveOnce()
    await proveOnce()
    await verify(other)
    expect(await readEvidence()).toMatchObject([{ country: 'US', verifiedPhones: 2, unverified: 0 }])
    guarded.clock.advance(24 * 3_600_000)
    await verify(proved)
    expect(await readEvidence()).toMatchObject([{ country: 'US', verifiedPhones: 2, unverified: 0 }])
    await guarded.dispose()
  })
})

test('a bad token is charged to the rate of verifications', async () => {
  const limited = await createTestService({
    plans: { free: { ...unlimitedPlan, verifyPerMinute: 2 } },
    env: { ...guardOffEnv, OTPD_DEV: 'true' },
  })
  const app = await limited.createApplication(await limited.createDeveloper())
  const call = async (token: string) => {
    const { status, headers, error } = await prove({ token }, {}, app, limited)
    return [status, headers.get('ratelimit'), error?.reason]
  }
  expect(await call('a.b.c')).toEqual([400, expect.stringContaining('r=1'), 'PROOF_MALFORMED'])
  const token = await issue(newPhone(), undefined, limited)
  expect(await call(token)).toEqual([201, expect.stringContaining('r=0'), undefined])
  expect(await call(await issue(newPhone(), undefined, limited))).toEqual([
    429,
    expect.anything(),
    'APP_RATE',
  ])
  await limited.dispose()
})

test('a call above the rate of verifications loads no keys', async () => {
  const fetched = spyOn(testWorld, 'fetch').mockRejectedValue(new TypeError('unreachable'))
  const limited = await createTestService({
    plans: { free: { ...unlimitedPlan, verifyPerMinute: 1 } },
    env: { ...guardOffEnv, OTPD_FIREBASE_PROJECTS: '123456789012' },
  })
  const app = await limited.createApplication(await limited.createDeveloper())
  const { privateKey } = await generateKeyPair('ES256')
  const token = await new SignJWT({ iss: 'https://fpnv.googleapis.com/projects/123456789012' })
    .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: 'a' })
    .sign(privateKey)
  const call = async () => {
    const { status, error } = await prove({ token }, {}, app, limited)
    return [status, error?.reason, fetched.mock.calls.length]
  }
  expect(await call()).toEqual([503, 'PROOF_KEYS_UNAVAILABLE', 1])
  limited.clock.advance(31_000)
  expect(await call()).toEqual([429, 'APP_RATE', 1])
  fetched.mockRestore()
  await limited.dispose()
})

test('a server that is not configured for proofs says so, and issues none', async () => {
  const plain = await createTestService()
  const app = await plain.createApplication(await plain.createDeveloper())
  const refused = await prove({ token: await issue(newPhone()) }, {}, app, plain)
  expect([refused.status, refused.error.reason]).toEqual([400, 'PROOF_NOT_CONFIGURED'])
  const body = { phone: newPhone() }
  expect((await plain.request('POST', '/v1/otp/proofs/test', { as: app, body })).error.reason).toBe(
    'ROUTE_NOT_FOUND',
  )
  await plain.dispose()
})

test('the test issuer asks for the credentials of an application', async () => {
  const body = { phone: newPhone() }
  expect((await service.request('POST', '/v1/otp/proofs/test', { body })).status).toBe(401)
  const { data } = await service.request<{ token: string }>('POST', '/v1/otp/proofs/test', {
    as: application,
    body,
  })
  expect((await prove({ token: data.token })).data.phone).toBe(body.phone)
})

test('the test issuer makes no token of what is no phone number', async () => {
  for (const phone of ['nope', '+999123', '+9991234567890']) {
    const { status, error } = await service.request('POST', '/v1/otp/proofs/test', {
      as: application,
      body: { phone },
    })
    expect([phone, status, error.code]).toEqual([phone, 400, 'INVALID_PHONE_NUMBER'])
  }
})
