import { afterAll, describe, expect, test } from 'bun:test'
import { withRetriedWrites } from '../../helpers/databases.ts'
import { readOpened } from '../../helpers/sealed-rows.ts'
import { createOtpTestService, countByOutcome, createOtpClient, phone } from '../../helpers/otp-client.ts'
import { unlimitedPlan, unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestApplication } from '../../helpers/service.ts'

const dayMs = 24 * 60 * 60 * 1000

let live: TestApplication
const plans = { free: { ...unlimitedPlan, sendPerMinute: 5 } }
const { service, otp, owner } = await createOtpTestService({ plans })
afterAll(() => service.dispose())

let keys = 0
const newKey = () => ({ 'idempotency-key': `key-${keys++}` })
const newLive = async () => (live = await service.createApplication(owner))
const listRequests = async (application: TestApplication) =>
  (await service.request<unknown[]>('GET', `/v1/otp?appId=${application.id}`, { as: owner })).data.length
const isReplay = ({ headers }: { headers: Headers }) => headers.get('idempotency-replayed')

describe('a send with an idempotency key', () => {
  test('runs once; a retry gets the same response, marked as replayed', async () => {
    await newLive()
    const key = newKey()
    const first = await otp.send(live, {}, key)
    service.clock.advance(10_000)
    const retryResponse = await otp.send(live, {}, key)
    expect([first.status, isReplay(first)]).toEqual([201, null])
    expect([retryResponse.status, isReplay(retryResponse)]).toEqual([201, 'true'])
    expect(retryResponse.text).toBe(first.text)
    expect(await listRequests(live)).toBe(1)
    expect(await otp.listLogEntries(owner, first.data.requestId)).toHaveLength(1)
  })

  test('returns the code of the committed result, also if its transaction is retried', async () => {
    const app = await service.createApplication(owner, { environment: 'test' })
    const key = newKey()
    const codes: Array<string | undefined> = []
    const sendConcurrently = async () => {
      if (codes.length === 0) codes.push((await otp.send(app, {}, key)).data.code)
    }
    const node = await createTestService({ database: withRetriedWrites(service.database, sendConcurrently) })
    const retryResponse = await createOtpClient(node).send(app, {}, key)
    expect(isReplay(retryResponse)).toBe('true')
    expect([retryResponse.data.code]).toEqual(codes)
    await node.dispose()
  })

  test('is replayed before the rate limit and at no cost', async () => {
    await newLive()
    const key = newKey()
    await otp.send(live, {}, key)
    for (let i = 0; i < 4; i++) await otp.sendOrThrow(live)
    for (let i = 0; i < 10; i++) {
      const retryResponse = await otp.send(live, {}, key)
      expect([retryResponse.status, isReplay(retryResponse)]).toEqual([201, 'true'])
      expect(retryResponse.headers.get('ratelimit')).toBe('"otp-send";r=0;t=60')
    }
    expect((await otp.send(live)).status).toBe(429)
  })

  test('of a test application returns the code again, which was not stored', async () => {
    const testing = await service.createApplication(owner, { environment: 'test' })
    const key = newKey()
    const first = await otp.send(testing, {}, key)
    const retryResponse = await otp.send(testing, {}, key)
    expect(first.data.code).toBe(await otp.getCode(first.data.requestId))
    expect(retryResponse.text).toBe(first.text)
    const stored = JSON.stringify(await readOpened(service.database, 'idempotencyKeys'))
    expect(stored).toContain(first.data.requestId)
    expect(stored).not.toContain(first.data.code ?? '')
    // Also after the request has ended.
    await otp.cancel(testing, first.data.requestId)
    expect((await otp.send(testing, {}, key)).text).toBe(first.text)
  })

  test('is rejected if the key was used with a different body', async () => {
    await newLive()
    const key = newKey()
    await otp.send(live, {}, key)
    for (const body of [{ phone: '+14155552672' }, { ttlSeconds: 60 }]) {
      const reused = await otp.send(live, body, key)
      expect([reused.status, reused.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    }
    expect(await listRequests(live)).toBe(1)
  })

  test('treats a bare key and the quoted string as the same', async () => {
    await newLive()
    const first = await otp.send(live, {}, { 'idempotency-key': 'the-same' })
    const retryResponse = await otp.send(live, {}, { 'idempotency-key': '"the-same"' })
    expect(retryResponse.data.requestId).toBe(first.data.requestId)
    expect(isReplay(retryResponse)).toBe('true')
  })

  test.each(['', ' ', '""', '"', 'a b', '"a b"', 'a"b', 'é', 'x'.repeat(256), `"${'x'.repeat(256)}"`])(
    'rejects %j as a key',
    async (value) => {
      const response = await otp.send(live, {}, { 'idempotency-key': value })
      expect(response.status).toBe(400)
      expect(response.error).toMatchObject({
        code: 'INVALID_ARGUMENT',
        reason: 'IDEMPOTENCY_KEY_INVALID',
        details: [{ in: 'header', path: 'idempotency-key' }],
      })
    },
  )

  test('accepts a key of 255 visible characters', async () => {
    await newLive()
    const key = { 'idempotency-key': '!~'.repeat(127) + 'x' }
    expect((await otp.send(live, {}, key)).status).toBe(201)
    expect(isReplay(await otp.send(live, {}, key))).toBe('true')
  })

  test('is scoped to application and route', async () => {
    const [one, other] = [await newLive(), await newLive()]
    const key = newKey()
    const first = await otp.send(one, {}, key)
    const second = await otp.send(other, {}, key)
    expect(isReplay(second)).toBeNull()
    expect(second.data.requestId).not.toBe(first.data.requestId)
    service.clock.advance(30_000)
    const resent = await otp.resend(one, first.data.requestId, key)
    expect([resent.status, isReplay(resent)]).toEqual([200, null])
    expect(isReplay(await otp.resend(one, first.data.requestId, key))).toBe('true')
    expect((await otp.get(owner, first.data.requestId)).data.resends).toBe(1)
  })

  test('is forgotten after 24 hours', async () => {
    await newLive()
    const key = newKey()
    const first = await otp.send(live, {}, key)
    service.clock.advance(dayMs - 1)
    expect((await otp.send(live, {}, key)).data.requestId).toBe(first.data.requestId)
    service.clock.advance(1)
    const later = await otp.send(live, { phone: '+14155552672' }, key)
    expect([later.status, isReplay(later)]).toEqual([201, null])
    expect(isReplay(await otp.send(live, { phone: '+14155552672' }, key))).toBe('true')
  })

  test('that was malformed or rate limited can be retried', async () => {
    await newLive()
    const key = newKey()
    expect((await otp.send(live, { phone: 'rubbish' }, key)).status).toBe(400)
    for (let i = 0; i < 5; i++) await otp.sendOrThrow(live)
    const refused = await otp.send(live, {}, key)
    expect([refused.status, isReplay(refused)]).toEqual([429, null])
    service.clock.advance(60_000)
    const admitted = await otp.send(live, {}, key)
    expect([admitted.status, isReplay(admitted)]).toEqual([201, null])
  })

  test('is not replayed once the credentials are invalid', async () => {
    await newLive()
    const key = newKey()
    await otp.send(live, {}, key)
    await service.request('PATCH', `/v1/applications/${live.id}`, { as: owner, body: { status: 'disabled' } })
    expect((await otp.send(live, {}, key)).status).toBe(403)
  })
})

describe('a resend with an idempotency key', () => {
  test('that is refused is judged again', async () => {
    await newLive()
    const { requestId } = await otp.sendOrThrow(live)
    const earlyKey = newKey()
    const tooSoon = await otp.resend(live, requestId, earlyKey)
    expect([tooSoon.status, isReplay(tooSoon)]).toEqual([429, null])
    service.clock.advance(30_000)
    expect((await otp.resend(live, requestId, earlyKey)).status).toBe(200)
    await otp.cancel(live, requestId)
    const lateKey = newKey()
    for (let call = 0; call < 2; call++) {
      const closed = await otp.resend(live, requestId, lateKey)
      expect([closed.status, isReplay(closed)]).toEqual([410, null])
    }
    const unknown = await otp.resend(live, 'rubbish', lateKey)
    expect([unknown.status, isReplay(unknown)]).toEqual([404, null])
  })
})

describe('a refused call', () => {
  const storedKeys = async () => {
    const { idempotencyKeys } = service.database.tables
    return (await service.database.read.select().from(idempotencyKeys)).length
  }

  test('leaves nothing behind', async () => {
    await newLive()
    const before = await storedKeys()
    const refusedCalls = [
      ...Array.from({ length: 20 }, () =>
        service.request('POST', '/v1/applications', {
          as: owner,
          body: { name: 'x', projectId: `prj_${'0'.repeat(26)}`, environment: 'live' },
          headers: newKey(),
        }),
      ),
      ...Array.from({ length: 20 }, () =>
        service.request('POST', '/v1/webhooks', {
          as: owner,
          body: { appId: 'app_none', url: 'https://example.com/', events: ['*'] },
          headers: newKey(),
        }),
      ),
      ...Array.from({ length: 5 }, () => otp.resend(live, `otp_${'0'.repeat(26)}`, newKey())),
    ]
    for (const { status } of await Promise.all(refusedCalls)) expect(status).toBe(404)
    expect(await storedKeys()).toBe(before)
  })

  test('that made an OTP request is replayed', async () => {
    const env = {
      OTPD_GUARD_MODE: 'enforce',
      OTPD_GUARD_DENIED_COUNTRIES: 'DE',
      OTPD_PHONE_SEND_BUDGET: 'off',
    }
    const guarded = await createTestService({ database: service.database, plans: unlimitedPlans, env })
    await newLive()
    const key = newKey()
    const client = createOtpClient(guarded)
    const first = await client.send(live, { phone: '+4915123456789' }, key)
    const retried = await client.send(live, { phone: '+4915123456789' }, key)
    expect([first.status, isReplay(first)]).toEqual([403, null])
    expect([retried.status, isReplay(retried)]).toEqual([403, 'true'])
    expect(retried.error.metadata).toEqual(first.error.metadata)
    expect(await listRequests(live)).toBe(1)
    await guarded.dispose()
  })

  test('that is made 50 times at once with one key runs once when it is cured', async () => {
    const developer = await service.createDeveloper()
    const { id: projectId } = await service.createProject(developer)
    const body = { name: 'x', projectId, environment: 'live' }
    const headers = newKey()
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        service.request('POST', '/v1/applications', {
          as: developer,
          body: n < 25 ? { ...body, projectId: `prj_${'0'.repeat(26)}` } : body,
          headers,
        }),
      ),
    )
    expect(countByOutcome(responses)).toEqual({
      '201': 1,
      '404 NOT_FOUND': 25,
      '409 CONFLICT IDEMPOTENCY_RESULT_NOT_STORED': 24,
    })
  })
})

describe('a key that another request has claimed', () => {
  test('is rejected while that request is in progress', async () => {
    await newLive()
    const key = newKey()
    const body = { phone }
    const first = await otp.send(live, body, key)
    expect(first.status).toBe(201)
    // The state while another node has claimed the key and is still working.
    const { idempotencyKeys } = service.database.tables
    await service.database.write(async (tx) => {
      await tx.update(idempotencyKeys).set({ answer: null })
    })
    const concurrentResponse = await otp.send(live, body, key)
    expect(concurrentResponse.status).toBe(409)
    expect(concurrentResponse.error).toMatchObject({ code: 'CONFLICT', reason: 'IDEMPOTENCY_IN_PROGRESS' })
    expect(concurrentResponse.headers.get('retry-after')).toBe('1')
  })
})
