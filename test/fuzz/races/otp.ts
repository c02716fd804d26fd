import { expect } from 'bun:test'
import { tally } from '../../helpers/otp.ts'
import { atOnce, racers, type Race } from './race.ts'
import { openRaceScene, type RaceScene } from './scene.ts'

type Round = (index: number, random: () => number) => Promise<void>

/** @param prepare @returns a round, and the ends that all rounds together must have come to */
const otpRace = (
  name: string,
  prepare: (scene: RaceScene) => { round: Round; ends?: Set<string>; endsExpected?: string[] },
): Race => ({
  name,
  async open(database) {
    const scene = await openRaceScene(database)
    const { round, ends, endsExpected } = prepare(scene)
    const finish = () => {
      if (ends) expect([...ends].toSorted()).toEqual(endsExpected ?? [])
    }
    return { round, finish, close: scene.close }
  },
})

export const otpRaces: Race[] = [
  otpRace(`${racers} with the right code make exactly one success, one event and one identity`, (scene) => ({
    async round(_, random) {
      const { otp, application, service, developer, logged, rowOf } = scene
      const phone = scene.newPhone()
      const { requestId } = await otp.sent(application, { phone })
      const code = await otp.codeOf(requestId)
      const answers = await atOnce(racers, random, () => otp.verify(application, requestId, code))
      expect(tally(answers)).toEqual({ '200': 1, '409 ALREADY_VERIFIED': racers - 1 })
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.verified': 1 })
      const identity = await service.store.read.identities.findByPhone(developer.developer.id, phone, phone)
      expect(identity?.verificationCount).toBe(1)
      expect(await rowOf(requestId)).toMatchObject({ status: 'verified', attempts: 1 })
    },
  })),

  otpRace(`${racers} wrong guesses are compared five times and fail the request once`, (scene) => ({
    async round(_, random) {
      const { otp, application, logged, rowOf } = scene
      const { requestId } = await otp.sent(application, { phone: scene.newPhone() })
      const guesses = await atOnce(racers, random, (index) => otp.wrongCodeOf(requestId, index + 1))
      const answers = await atOnce(racers, random, (index) =>
        otp.verify(application, requestId, guesses[index] ?? ''),
      )
      expect(tally(answers)).toEqual({ '400 INVALID_CODE': 5, '410 ATTEMPTS_EXHAUSTED': racers - 5 })
      const left = answers.flatMap(({ error }) => error.metadata?.['attemptsRemaining'] ?? [])
      expect(left.toSorted()).toEqual([0, 1, 2, 3, 4])
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.attempt_failed': 5, 'otp.failed': 1 })
      expect(await rowOf(requestId)).toMatchObject({ status: 'failed', attempts: 5 })
    },
  })),

  otpRace('right and wrong ones leave one end and never more than five attempts', (scene) => {
    const ends = new Set<string>()
    return {
      ends,
      endsExpected: ['failed', 'verified'],
      async round(_, random) {
        const { otp, application, logged, rowOf } = scene
        const { requestId } = await otp.sent(application, { phone: scene.newPhone() })
        const right = await otp.codeOf(requestId)
        const codes = await atOnce(racers, random, (index) =>
          index < 8 ? right : otp.wrongCodeOf(requestId, index),
        )
        const answers = await atOnce(racers, random, (index) =>
          otp.verify(application, requestId, codes[index] ?? ''),
        )
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
      },
    }
  }),

  otpRace(`${racers} resends send once`, (scene) => ({
    async round(_, random) {
      const { otp, application, logged, rowOf, service } = scene
      const { requestId } = await otp.sent(application, { phone: scene.newPhone() })
      service.clock.advance(30_000)
      const answers = await atOnce(racers, random, () => otp.resend(application, requestId))
      expect(tally(answers)).toEqual({ '200': 1, '429 RATE_LIMITED RESEND_TOO_SOON': racers - 1 })
      expect(await logged(requestId)).toEqual({ 'otp.sent': 2 })
      expect((await rowOf(requestId))?.resends).toBe(1)
    },
  })),

  otpRace(`${racers} with one idempotency key make one request`, (scene) => ({
    async round(index, random) {
      const { otp, application, service, developer } = scene
      const body = { phone: scene.newPhone() }
      const key = { 'idempotency-key': `key-${index}` }
      const answers = await atOnce(racers, random, () => otp.send(application, body, key))
      expect(tally(answers)).toEqual({ '201': racers })
      expect(new Set(answers.map(({ data }) => data.requestId)).size).toBe(1)
      expect(answers.filter(({ headers }) => headers.has('idempotency-replayed'))).toHaveLength(racers - 1)
      const stored = await service.request<unknown[]>('GET', '/v1/otp?limit=2', { as: developer })
      expect(JSON.stringify(stored.data[1] ?? '')).not.toContain(body.phone)
    },
  })),

  otpRace('a cancellation and a verification: one of them ends the request', (scene) => {
    const ends = new Set<string>()
    return {
      ends,
      endsExpected: ['canceled', 'verified'],
      async round(_, random) {
        const { otp, application, logged, rowOf } = scene
        const { requestId } = await otp.sent(application, { phone: scene.newPhone() })
        const code = await otp.codeOf(requestId)
        const statuses = await atOnce(racers, random, async (index) => {
          const call = index % 2 === 0 ? otp.cancel : otp.verify
          return (await call(application, requestId, code)).status
        })
        expect(statuses.filter((status) => status === 200)).toHaveLength(1)
        const row = await rowOf(requestId)
        ends.add(row?.status ?? '')
        expect(await logged(requestId)).toEqual({ 'otp.sent': 1, [`otp.${row?.status}`]: 1 })
      },
    }
  }),

  otpRace('an expiry is told once, whoever notices it', (scene) => ({
    async round(_, random) {
      const { otp, application, logged, rowOf, service } = scene
      const { requestId } = await otp.sent(application, { phone: scene.newPhone() })
      const code = await otp.codeOf(requestId)
      service.clock.advance(300_000)
      await atOnce<unknown>(racers, random, (index) => {
        if (index % 10 === 0) return service.services.otp.expireDue()
        return index % 2 === 0 ? otp.cancel(application, requestId) : otp.verify(application, requestId, code)
      })
      expect(await logged(requestId)).toEqual({ 'otp.sent': 1, 'otp.expired': 1 })
      expect(await rowOf(requestId)).toMatchObject({ status: 'expired', attempts: 0 })
    },
  })),

  otpRace('wrong guesses over many requests for one phone are compared 25 times', (scene) => ({
    async round(_, random) {
      const { otp, application, rowOf } = scene
      const phone = scene.newPhone()
      const requests = await atOnce(10, random, () => otp.sent(application, { phone }))
      const answers = await atOnce(racers + 10, random, async (index) => {
        const requestId = requests[index % 10]?.requestId ?? ''
        return otp.verify(application, requestId, await otp.wrongCodeOf(requestId))
      })
      const seen = tally(answers)
      expect(seen['400 INVALID_CODE']).toBe(25)
      const refused =
        (seen['429 RATE_LIMITED PHONE_CHECK_BUDGET'] ?? 0) + (seen['410 ATTEMPTS_EXHAUSTED'] ?? 0)
      expect(refused).toBe(racers + 10 - 25)
      const rows = await Promise.all(requests.map(({ requestId }) => rowOf(requestId)))
      expect(rows.reduce((sum, row) => sum + (row?.attempts ?? 0), 0)).toBe(25)
    },
  })),

  otpRace('a send and the deletion of whom it would tell both succeed', (scene) => ({
    async round(_, random) {
      const { otp, application, service, developer } = scene
      const path = '/v1/webhooks'
      const body = { appId: application.id, url: 'https://example.com/', events: ['*'] }
      const endpoint = await service.request<{ id: string }>('POST', path, { as: developer, body })
      const answers = await atOnce<Awaited<ReturnType<typeof otp.send>>>(8, random, (index) =>
        index === 0
          ? service.request('DELETE', `${path}/${endpoint.data.id}`, { as: developer })
          : otp.send(application, { phone: scene.newPhone() }),
      )
      expect(tally(answers)).toEqual({ '200': 1, '201': 7 })
    },
  })),
]
