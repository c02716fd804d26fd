import { expect } from 'bun:test'
import { countByOutcome, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { runConcurrently, concurrentCalls, type Race } from './race.ts'
import { openRaceFixture, type RaceFixture } from './fixture.ts'

type Round = (index: number, random: () => number) => Promise<void>

/** Defines a race. @param prepare returns a round, and the outcomes that all rounds together must have produced */
const otpRace = (
  name: string,
  prepare: (fixture: RaceFixture) => {
    round: Round
    terminalStatuses?: Set<string>
    expectedStatuses?: string[]
  },
): Race => ({
  name,
  async open(database) {
    const fixture = await openRaceFixture(database)
    const { round, terminalStatuses, expectedStatuses } = prepare(fixture)
    const finish = () => {
      if (terminalStatuses) expect([...terminalStatuses].toSorted()).toEqual(expectedStatuses ?? [])
    }
    return { round, finish, close: fixture.close }
  },
})

export const otpRaces: Race[] = [
  otpRace(
    `${concurrentCalls} with the right code cause exactly one success, one event and one identity`,
    (fixture) => ({
      async round(_, random) {
        const { otp, application, service, developer, countEvents, findRow } = fixture
        const phone = fixture.newPhone()
        const { requestId } = await otp.sendOrThrow(application, { phone })
        const code = await otp.getCode(requestId)
        const responses = await runConcurrently(concurrentCalls, random, () =>
          otp.verify(application, requestId, code),
        )
        expect(countByOutcome(responses)).toEqual({ '200': 1, '409 ALREADY_VERIFIED': concurrentCalls - 1 })
        expect(await countEvents(requestId)).toEqual({ 'otp.sent': 1, 'otp.verified': 1 })
        const identity = await service.services.identities.getByPhone(developer.developer.id, phone)
        expect(identity.verificationCount).toBe(1)
        expect(await findRow(requestId)).toMatchObject({ status: 'verified', attempts: 1 })
      },
    }),
  ),

  {
    name: `${concurrentCalls} proofs with one token, by applications of two developers, verify once`,
    async open(database) {
      const fixture = await openRaceFixture(database, unlimitedPlans, { ...guardOffEnv, OTPD_DEV: 'true' })
      const { service } = fixture
      const other = await service.createApplication(await service.createDeveloper())
      return {
        close: fixture.close,
        async round(_, random) {
          const token = await service.services.testProofs?.issue({ phone: fixture.newPhone() })
          const responses = await runConcurrently(concurrentCalls, random, (index) =>
            service.request<{ requestId: string }>('POST', '/v1/otp/proofs', {
              as: index % 2 === 0 ? fixture.application : other,
              body: { type: 'firebase-pnv', token },
              headers: index % 3 === 0 ? { 'idempotency-key': `${token?.slice(-20)}-${index}` } : {},
            }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 1,
            '400 PROOF_REJECTED PROOF_REUSED': concurrentCalls - 1,
          })
          const proved = responses.find(({ status }) => status === 201)
          expect(await fixture.countEvents(proved?.data.requestId ?? '')).toEqual({ 'otp.verified': 1 })
        },
      }
    },
  },

  otpRace(`${concurrentCalls} deliveries of a code to a phone send one message`, (fixture) => {
    const application = fixture.service.createApplication(fixture.developer, { environment: 'test' })
    return {
      async round(_, random) {
        const { service, countEvents } = fixture
        const body = { phone: fixture.newPhone(), code: '907155' }
        const call = { as: await application, body }
        const responses = await runConcurrently(concurrentCalls, random, () =>
          service.request<{ id: string }>('POST', '/v1/otp/deliver', call),
        )
        expect(countByOutcome(responses)).toEqual({ '200': concurrentCalls })
        const ids = new Set(responses.map(({ data }) => data.id))
        expect(ids.size).toBe(1)
        for (const id of ids) expect(await countEvents(id)).toEqual({ 'message.sent': 1 })
      },
    }
  }),

  otpRace(`${concurrentCalls} with the right code by phone cause exactly one success`, (fixture) => ({
    async round(_, random) {
      const { otp, application, countEvents } = fixture
      const phone = fixture.newPhone()
      const earlier = await otp.sendOrThrow(application, { phone })
      await otp.verify(application, earlier.requestId, await otp.getCode(earlier.requestId))
      const { requestId } = await otp.sendOrThrow(application, { phone })
      const code = await otp.getCode(requestId)
      const responses = await runConcurrently(concurrentCalls, random, () =>
        otp.verifyByPhone(application, phone, code),
      )
      expect(countByOutcome(responses)).toEqual({ '200': 1, '404 NOT_FOUND': concurrentCalls - 1 })
      expect(await countEvents(requestId)).toEqual({ 'otp.sent': 1, 'otp.verified': 1 })
    },
  })),

  otpRace('verifications by phone between sends: each code succeeds at most once', (fixture) => ({
    async round(_, random) {
      const { otp, application, findRow } = fixture
      const phone = fixture.newPhone()
      const first = await otp.sendOrThrow(application, { phone })
      const code = await otp.getCode(first.requestId)
      const sent: string[] = [first.requestId]
      const responses = await runConcurrently(concurrentCalls, random, async (index) => {
        if (index % 10 > 0) return otp.verifyByPhone(application, phone, code)
        const response = await otp.send(application, { phone })
        sent.push(response.data.requestId)
        return response
      })
      const verified = responses.filter(({ status }) => status === 200).length
      const rows = await Promise.all(sent.map(findRow))
      expect(rows.filter((row) => row?.status === 'verified')).toHaveLength(verified)
      expect(verified).toBeLessThanOrEqual(1)
      const compared = responses.filter(({ error }) => error?.code === 'INVALID_CODE').length
      expect(rows.reduce((sum, row) => sum + (row?.attempts ?? 0), 0)).toBe(compared + verified)
    },
  })),

  otpRace('cancellations by phone, and by id, end each code of the phone once', (fixture) => ({
    async round(_, random) {
      const { otp, application, service, countEvents } = fixture
      const body = { phone: fixture.newPhone() }
      const sent: string[] = []
      for (let n = 0; n < 3; n++) sent.push((await otp.sendOrThrow(application, body)).requestId)
      const responses = await runConcurrently(concurrentCalls, random, async (index) => {
        if (index % 10 === 0) {
          sent.push((await otp.sendOrThrow(application, body)).requestId)
          return undefined
        }
        if (index % 10 === 1) return otp.cancel(application, sent[index % 3] ?? '')
        return service.request('POST', '/v1/otp/cancel', { as: application, body })
      })
      const counts = countByOutcome(responses.filter((response) => response !== undefined))
      const expected = new Set(['200', '404 NOT_FOUND', '410 OTP_CANCELED'])
      expect(Object.keys(counts).filter((outcome) => !expected.has(outcome))).toEqual([])
      let canceled = 0
      for (const id of sent) canceled += (await countEvents(id))['otp.canceled'] ?? 0
      expect(counts['200']).toBe(canceled)
      // Every code that is left was sent after the last cancellation.
      expect(canceled).toBeGreaterThanOrEqual(3)
    },
  })),

  otpRace(
    `${concurrentCalls} wrong guesses are compared five times and fail the request once`,
    (fixture) => ({
      async round(_, random) {
        const { otp, application, countEvents, findRow } = fixture
        const { requestId } = await otp.sendOrThrow(application, { phone: fixture.newPhone() })
        const guesses = await runConcurrently(concurrentCalls, random, (index) =>
          otp.getWrongCode(requestId, index + 1),
        )
        const responses = await runConcurrently(concurrentCalls, random, (index) =>
          otp.verify(application, requestId, guesses[index] ?? ''),
        )
        expect(countByOutcome(responses)).toEqual({
          '400 INVALID_CODE': 5,
          '410 ATTEMPTS_EXHAUSTED': concurrentCalls - 5,
        })
        const attemptsLeft = responses.flatMap(({ error }) => error.metadata?.['attemptsRemaining'] ?? [])
        expect(attemptsLeft.toSorted()).toEqual([0, 1, 2, 3, 4])
        expect(await countEvents(requestId)).toEqual({
          'otp.sent': 1,
          'otp.attempt_failed': 5,
          'otp.failed': 1,
        })
        expect(await findRow(requestId)).toMatchObject({ status: 'failed', attempts: 5 })
      },
    }),
  ),

  otpRace('right and wrong guesses lead to one outcome and at most five attempts', (fixture) => {
    const terminalStatuses = new Set<string>()
    return {
      terminalStatuses,
      expectedStatuses: ['failed', 'verified'],
      async round(_, random) {
        const { otp, application, countEvents, findRow } = fixture
        const { requestId } = await otp.sendOrThrow(application, { phone: fixture.newPhone() })
        const rightCode = await otp.getCode(requestId)
        const codes = await runConcurrently(concurrentCalls, random, (index) =>
          index < 8 ? rightCode : otp.getWrongCode(requestId, index),
        )
        const responses = await runConcurrently(concurrentCalls, random, (index) =>
          otp.verify(application, requestId, codes[index] ?? ''),
        )
        const outcomeCounts = countByOutcome(responses)
        const row = await findRow(requestId)
        const wrongCount = outcomeCounts['400 INVALID_CODE'] ?? 0
        const verified = outcomeCounts['200'] ?? 0
        expect(wrongCount + verified).toBe(row?.attempts ?? -1)
        expect(row?.attempts).toBeLessThanOrEqual(5)
        expect(verified).toBe(row?.status === 'verified' ? 1 : 0)
        expect(await countEvents(requestId)).toEqual({
          'otp.sent': 1,
          ...(wrongCount > 0 && { 'otp.attempt_failed': wrongCount }),
          ...(verified === 1 ? { 'otp.verified': 1 } : { 'otp.failed': 1 }),
        })
        terminalStatuses.add(row?.status ?? '')
      },
    }
  }),

  otpRace(`${concurrentCalls} resends send once`, (fixture) => ({
    async round(_, random) {
      const { otp, application, countEvents, findRow, service } = fixture
      const { requestId } = await otp.sendOrThrow(application, { phone: fixture.newPhone() })
      service.clock.advance(30_000)
      const responses = await runConcurrently(concurrentCalls, random, () =>
        otp.resend(application, requestId),
      )
      expect(countByOutcome(responses)).toEqual({
        '200': 1,
        '429 RATE_LIMITED RESEND_TOO_SOON': concurrentCalls - 1,
      })
      expect(await countEvents(requestId)).toEqual({ 'otp.sent': 2 })
      expect((await findRow(requestId))?.resends).toBe(1)
    },
  })),

  otpRace(`${concurrentCalls} with one idempotency key create one request`, (fixture) => ({
    async round(index, random) {
      const { otp, application, service, developer } = fixture
      const body = { phone: fixture.newPhone() }
      const key = { 'idempotency-key': `key-${index}` }
      const responses = await runConcurrently(concurrentCalls, random, () => otp.send(application, body, key))
      expect(countByOutcome(responses)).toEqual({ '201': concurrentCalls })
      expect(new Set(responses.map(({ data }) => data.requestId)).size).toBe(1)
      expect(responses.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(
        concurrentCalls - 1,
      )
      const stored = await service.request<unknown[]>('GET', '/v1/otp?limit=2', { as: developer })
      expect(JSON.stringify(stored.data[1] ?? '')).not.toContain(body.phone)
    },
  })),

  otpRace('a cancellation and a verification: one of them closes the request', (fixture) => {
    const terminalStatuses = new Set<string>()
    return {
      terminalStatuses,
      expectedStatuses: ['canceled', 'verified'],
      async round(_, random) {
        const { otp, application, countEvents, findRow } = fixture
        const { requestId } = await otp.sendOrThrow(application, { phone: fixture.newPhone() })
        const code = await otp.getCode(requestId)
        const statuses = await runConcurrently(concurrentCalls, random, async (index) => {
          const call = index % 2 === 0 ? otp.cancel : otp.verify
          return (await call(application, requestId, code)).status
        })
        expect(statuses.filter((status) => status === 200)).toHaveLength(1)
        const row = await findRow(requestId)
        terminalStatuses.add(row?.status ?? '')
        expect(await countEvents(requestId)).toEqual({ 'otp.sent': 1, [`otp.${row?.status}`]: 1 })
      },
    }
  }),

  otpRace('an expiry is logged once, whichever call notices it', (fixture) => ({
    async round(_, random) {
      const { otp, application, countEvents, findRow, service } = fixture
      const { requestId } = await otp.sendOrThrow(application, { phone: fixture.newPhone() })
      const code = await otp.getCode(requestId)
      service.clock.advance(300_000)
      await runConcurrently<unknown>(concurrentCalls, random, (index) => {
        if (index % 10 === 0) return service.services.otp.expireRequests()
        return index % 2 === 0 ? otp.cancel(application, requestId) : otp.verify(application, requestId, code)
      })
      expect(await countEvents(requestId)).toEqual({ 'otp.sent': 1, 'otp.expired': 1 })
      expect(await findRow(requestId)).toMatchObject({ status: 'expired', attempts: 0 })
    },
  })),

  otpRace('wrong guesses at many requests for one phone are compared 25 times', (fixture) => ({
    async round(_, random) {
      const { otp, application, findRow } = fixture
      const phone = fixture.newPhone()
      const requests = await runConcurrently(10, random, () => otp.sendOrThrow(application, { phone }))
      const responses = await runConcurrently(concurrentCalls + 10, random, async (index) => {
        const requestId = requests[index % 10]?.requestId ?? ''
        return otp.verify(application, requestId, await otp.getWrongCode(requestId))
      })
      const outcomeCounts = countByOutcome(responses)
      expect(outcomeCounts['400 INVALID_CODE']).toBe(25)
      const refused =
        (outcomeCounts['429 RATE_LIMITED PHONE_CHECK_BUDGET'] ?? 0) +
        (outcomeCounts['410 ATTEMPTS_EXHAUSTED'] ?? 0)
      expect(refused).toBe(concurrentCalls + 10 - 25)
      const rows = await Promise.all(requests.map(({ requestId }) => findRow(requestId)))
      expect(rows.reduce((sum, row) => sum + (row?.attempts ?? 0), 0)).toBe(25)
    },
  })),

  otpRace('a send and the deletion of the webhook that it would notify both succeed', (fixture) => ({
    async round(_, random) {
      const { otp, application, service, developer } = fixture
      const path = '/v1/webhooks'
      const body = { appId: application.id, url: 'https://example.com/', events: ['*'] }
      const endpoint = await service.request<{ id: string }>('POST', path, { as: developer, body })
      const responses = await runConcurrently<Awaited<ReturnType<typeof otp.send>>>(8, random, (index) =>
        index === 0
          ? service.request('DELETE', `${path}/${endpoint.data.id}`, { as: developer })
          : otp.send(application, { phone: fixture.newPhone() }),
      )
      expect(countByOutcome(responses)).toEqual({ '200': 1, '201': 7 })
    },
  })),
]
