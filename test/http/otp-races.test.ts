import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { describeEachDatabase, raceRounds } from '../helpers/databases.ts'
import { guardOff, otpCalls, tally, unlimited, type OtpCalls } from '../helpers/otp.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'

const resendAfterMs = 30_000

const atOnce = <T>(count: number, call: (index: number) => T | Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => call(index)))

describeEachDatabase('calls at once:', (database, kind) => {
  let service: TestService
  let otp: OtpCalls
  let developer: TestDeveloper
  let application: TestApplication
  beforeAll(async () => {
    service = await createTestService({ plans: unlimited, env: guardOff, database: database() })
    otp = otpCalls(service)
    developer = await service.createDeveloper()
    application = await service.createApplication(developer)
  })
  afterAll(() => service.dispose())

  // A transaction costs many round trips there.
  const rounds = kind === 'PostgreSQL' ? 50 : raceRounds(kind)
  let phones = 0
  const newPhone = () => `+1415555${1000 + phones++}`
  const rowOf = (requestId: string) => service.store.read.otpRequests.find(requestId)

  /** What the log has about a request, each kind with its number. */
  async function logged(requestId: string) {
    const { events } = database().tables
    const rows = await database()
      .read.select({ type: events.type })
      .from(events)
      .where(eq(events.requestId, requestId))
    const counts: Record<string, number> = {}
    for (const { type } of rows) counts[type] = (counts[type] ?? 0) + 1
    return counts
  }

  test('50 with the right code make exactly one success, one event and one identity', async () => {
    for (let round = 0; round < rounds; round++) {
      const phone = newPhone()
      const { requestId } = await otp.sent(application, { phone })
      const code = await otp.codeOf(requestId)
      const answers = await atOnce(50, () => otp.verify(application, requestId, code))
      expect(tally(answers)).toEqual({ '200': 1, '409 ALREADY_VERIFIED': 49 })
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.verified': 1 })
      const identity = await service.store.read.identities.findByPhone(developer.developer.id, phone)
      expect(identity?.verificationCount).toBe(1)
      expect(await rowOf(requestId)).toMatchObject({ status: 'verified', attempts: 1 })
    }
  }, 180_000)

  test('50 wrong guesses are compared five times and fail the request once', async () => {
    for (let round = 0; round < rounds; round++) {
      const { requestId } = await otp.sent(application, { phone: newPhone() })
      const guesses = await atOnce(50, (index) => otp.wrongCodeOf(requestId, index + 1))
      const answers = await Promise.all(guesses.map((guess) => otp.verify(application, requestId, guess)))
      expect(tally(answers)).toEqual({ '400 INVALID_CODE': 5, '410 ATTEMPTS_EXHAUSTED': 45 })
      const left = answers.flatMap(({ error }) => error.metadata?.['attemptsRemaining'] ?? [])
      expect(left.toSorted()).toEqual([0, 1, 2, 3, 4])
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.attempt_failed': 5, 'otp.failed': 1 })
      expect(await rowOf(requestId)).toMatchObject({ status: 'failed', attempts: 5 })
    }
  }, 180_000)

  test('right and wrong ones leave one end and never more than five attempts', async () => {
    const ends = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const { requestId } = await otp.sent(application, { phone: newPhone() })
      const right = await otp.codeOf(requestId)
      // The right one comes at another place each time, now and then behind five wrong ones.
      const codes = await atOnce(24, (index) =>
        index === round % 8 || index > 20 ? right : otp.wrongCodeOf(requestId, index + 1),
      )
      const answers = await Promise.all(codes.map((code) => otp.verify(application, requestId, code)))
      const seen = tally(answers)
      const row = await rowOf(requestId)
      const wrong = seen['400 INVALID_CODE'] ?? 0
      const verified = seen['200'] ?? 0
      expect(wrong + verified).toBe(row?.attempts ?? -1)
      expect(row?.attempts).toBeLessThanOrEqual(5)
      expect(verified).toBe(row?.status === 'verified' ? 1 : 0)
      expect(await logged(requestId)).toEqual({
        'otp.sent': 1,
        ...(wrong > 0 && { 'otp.attempt_failed': wrong }),
        ...(verified === 1 ? { 'otp.verified': 1 } : { 'otp.failed': 1 }),
      })
      ends.add(row?.status ?? '')
    }
    expect([...ends].toSorted()).toEqual(['failed', 'verified'])
  }, 180_000)

  test('ten resends send once', async () => {
    for (let round = 0; round < rounds; round++) {
      const { requestId } = await otp.sent(application, { phone: newPhone() })
      service.clock.advance(resendAfterMs)
      const answers = await atOnce(10, () => otp.resend(application, requestId))
      expect(tally(answers)).toEqual({ '200': 1, '429 RATE_LIMITED RESEND_TOO_SOON': 9 })
      expect(await logged(requestId)).toEqual({ 'otp.sent': 2 })
      expect((await rowOf(requestId))?.resends).toBe(1)
    }
  }, 180_000)

  test('thirty with one idempotency key make one request', async () => {
    for (let round = 0; round < rounds; round++) {
      const body = { phone: newPhone() }
      const key = { 'idempotency-key': `key-${round}` }
      const answers = await atOnce(30, () => otp.send(application, body, key))
      expect(tally(answers)).toEqual({ '201': 30 })
      expect(new Set(answers.map(({ data }) => data.requestId)).size).toBe(1)
      expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(29)
      const stored = await service.request<unknown[]>('GET', '/v1/otp?limit=2', { as: developer })
      expect(JSON.stringify(stored.data[1])).not.toContain(body.phone)
    }
  }, 180_000)

  test('a cancellation and a verification: one of them ends the request', async () => {
    const ends = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const { requestId } = await otp.sent(application, { phone: newPhone() })
      const code = await otp.codeOf(requestId)
      const cancels = (index: number) => (round % 2 === 0 ? index < 5 : index >= 5)
      const answers = await atOnce(10, async (index) => {
        const answer = cancels(index)
          ? otp.cancel(application, requestId)
          : otp.verify(application, requestId, code)
        return (await answer).status
      })
      expect(answers.filter((status) => status === 200)).toHaveLength(1)
      const row = await rowOf(requestId)
      ends.add(row?.status ?? '')
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, [`otp.${row?.status}`]: 1 })
    }
    expect([...ends].toSorted()).toEqual(['canceled', 'verified'])
  }, 180_000)

  test('an expiry is told once, whoever notices it', async () => {
    for (let round = 0; round < rounds; round++) {
      const { requestId } = await otp.sent(application, { phone: newPhone() })
      const code = await otp.codeOf(requestId)
      service.clock.advance(300_000)
      await Promise.all([
        ...Array.from({ length: 5 }, () => otp.verify(application, requestId, code)),
        service.services.otp.expireDue(),
        ...Array.from({ length: 5 }, () => otp.cancel(application, requestId)),
        service.services.otp.expireDue(),
      ])
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.expired': 1 })
      expect(await rowOf(requestId)).toMatchObject({ status: 'expired', attempts: 0 })
    }
  }, 180_000)

  test('wrong guesses over many requests for one phone are compared 25 times', async () => {
    for (let round = 0; round < rounds; round++) {
      const phone = newPhone()
      const requests = await atOnce(10, () => otp.sent(application, { phone }))
      const answers = await atOnce(60, async (index) => {
        const requestId = requests[index % 10]?.requestId ?? ''
        return otp.verify(application, requestId, await otp.wrongCodeOf(requestId))
      })
      const seen = tally(answers)
      expect(seen['400 INVALID_CODE']).toBe(25)
      expect((seen['429 RATE_LIMITED PHONE_CHECK_BUDGET'] ?? 0) + (seen['410 ATTEMPTS_EXHAUSTED'] ?? 0)).toBe(
        35,
      )
      const rows = await Promise.all(requests.map(({ requestId }) => rowOf(requestId)))
      expect(rows.reduce((sum, row) => sum + (row?.attempts ?? 0), 0)).toBe(25)
    }
  }, 180_000)

  test('a send and the deletion of whom it would tell both succeed', async () => {
    for (let round = 0; round < rounds; round++) {
      const path = '/v1/webhooks'
      const body = { appId: application.id, url: 'https://example.com/', events: ['*'] }
      const endpoint = await service.request<{ id: string }>('POST', path, { as: developer, body })
      const answers = await atOnce(8, (index) =>
        index === round % 8
          ? service.request<unknown>('DELETE', `${path}/${endpoint.data.id}`, { as: developer })
          : otp.send(application, { phone: newPhone() }),
      )
      expect(tally(answers)).toEqual({ '200': 1, '201': 7 })
    }
  }, 180_000)

  test('applications of one developer that verify the same phone count every success', async () => {
    const others = await atOnce(4, () => service.createApplication(developer))
    const { summary } = service.services.analytics
    for (let round = 0; round < rounds; round++) {
      const phone = newPhone()
      const before = (await summary(developer.developer)).activeUsers
      const sent = await Promise.all(others.map(async (as) => ({ as, ...(await otp.sent(as, { phone })) })))
      const answers = await Promise.all(sent.map(({ as, requestId }) => otp.verifyRight(as, requestId)))
      expect(tally(answers)).toEqual({ '200': 4 })
      const identity = await service.request<{ verificationCount: number; applications: string[] }>(
        'GET',
        `/v1/users/${phone}`,
        { as: developer },
      )
      expect(identity.data).toMatchObject({
        verificationCount: 4,
        applications: others.map(({ id }) => id).toSorted(),
      })
      expect((await summary(developer.developer)).activeUsers).toBe(before + 1)
    }
  }, 180_000)
})

describeEachDatabase('rates under calls at once:', (database, kind) => {
  const rounds = kind === 'PostgreSQL' ? 50 : raceRounds(kind)
  const serviceWith = (sendPerMinute: number, verifyPerMinute: number) =>
    createTestService({
      plans: { free: { ...unlimited.free, sendPerMinute, verifyPerMinute } },
      env: guardOff,
      database: database(),
    })

  test('50 sends at once: exactly five go out', async () => {
    const service = await serviceWith(5, 10)
    const otp = otpCalls(service)
    const developer = await service.createDeveloper()
    for (let round = 0; round < rounds; round++) {
      const application = await service.createApplication(developer)
      const answers = await atOnce(50, (index) => otp.send(application, { phone: `+1415555${1000 + index}` }))
      expect(tally(answers)).toEqual({ '201': 5, '429 RATE_LIMITED APP_RATE': 45 })
      const path = `/v1/otp?limit=200&appId=${application.id}`
      expect((await service.request<unknown[]>('GET', path, { as: developer })).data).toHaveLength(5)
    }
    await service.dispose()
  }, 180_000)

  test('50 verifies over different requests: exactly ten are looked at', async () => {
    const service = await serviceWith(0, 10)
    const otp = otpCalls(service)
    const developer = await service.createDeveloper()
    for (let round = 0; round < rounds; round++) {
      const application = await service.createApplication(developer)
      const requests = await atOnce(5, (index) => otp.sent(application, { phone: `+1415555${1000 + index}` }))
      const answers = await atOnce(50, async (index) => {
        const requestId = requests[index % 5]?.requestId ?? ''
        return otp.verify(application, requestId, await otp.wrongCodeOf(requestId))
      })
      expect(tally(answers)).toEqual({ '400 INVALID_CODE': 10, '429 RATE_LIMITED APP_RATE': 40 })
    }
    await service.dispose()
  }, 180_000)
})
