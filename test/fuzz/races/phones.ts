import { expect } from 'bun:test'
import { countByOutcome, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { runConcurrently, concurrentCalls, type Race } from './race.ts'
import { openRaceFixture } from './fixture.ts'

/** A race over two applications of one developer and both spellings of one subscriber. */
async function openPhones(...args: Parameters<typeof openRaceFixture>) {
  const fixture = await openRaceFixture(...args)
  const applications = [
    fixture.application,
    await fixture.service.createApplication(fixture.developer),
  ] as const
  let count = 0
  return {
    ...fixture,
    /** Returns an application and a spelling for each index, all for one new subscriber. */
    newSubscriber() {
      const number = `11${20_000_000 + count++}`
      return (index: number) => ({
        as: applications[index % 2 === 0 ? 0 : 1],
        phone: index % 4 < 2 ? `+54${number}` : `+549${number}`,
      })
    },
  }
}

export const phoneRaces: Race[] = [
  {
    name: 'wrong guesses over two applications and two spellings are compared 25 times at each trust level',
    async open(database) {
      const { service, otp, newSubscriber, close } = await openPhones(database)
      return {
        close,
        async round(_, random) {
          const pick = newSubscriber()
          const own = { deviceId: 'own' }
          const first = await otp.sendOrThrow(pick(0).as, { phone: pick(0).phone, ...own })
          expect((await otp.verifyRightCode(pick(0).as, first.requestId)).status).toBe(200)
          const requests = await runConcurrently(20, random, async (index) => {
            const { as, phone } = pick(index)
            const sender = index < 10 ? {} : own
            return { as, ...(await otp.sendOrThrow(as, { phone, ...sender })) }
          })
          const responses = await runConcurrently(100, random, async (index) => {
            const request = requests[index % 20]
            if (!request) throw new Error('no request')
            return otp.verify(request.as, request.requestId, await otp.getWrongCode(request.requestId))
          })
          expect(countByOutcome(responses)['400 INVALID_CODE']).toBe(50)
          const attempts = [0, 0]
          for (const [index, { requestId }] of requests.entries()) {
            const level = index < 10 ? 0 : 1
            attempts[level] =
              (attempts[level] ?? 0) + ((await service.store.read.otpRequests.find(requestId))?.attempts ?? 0)
          }
          expect(attempts).toEqual([25, 25])
        },
      }
    },
  },

  {
    name: `of ${concurrentCalls} sends over two applications and two spellings exactly five leave, to a phone never seen before`,
    async open(database) {
      const env = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'enforce' }
      const { newSubscriber, otp, close } = await openPhones(database, unlimitedPlans, env)
      return {
        close,
        async round(_, random) {
          const pick = newSubscriber()
          const responses = await runConcurrently(concurrentCalls, random, (index) => {
            const { as, phone } = pick(index)
            return otp.send(as, { phone })
          })
          expect(countByOutcome(responses)).toEqual({
            '201': 5,
            '429 RATE_LIMITED PHONE_SEND_BUDGET': concurrentCalls - 5,
          })
        },
      }
    },
  },

  {
    name: 'applications that send to a new phone at once make one record, with every request in its list',
    async open(database) {
      const { newSubscriber, otp, service, close } = await openPhones(database)
      return {
        close,
        async round(_, random) {
          const pick = newSubscriber()
          const sent = await runConcurrently(8, random, async (index) => {
            const { as, phone } = pick(index)
            return (await otp.sendOrThrow(as, { phone })).requestId
          })
          const { otpRequests } = service.store.read
          const linked = new Set<string | undefined>()
          for (const id of sent) linked.add(await otpRequests.findPrevious(id))
          // Each is the one before another, but for the newest; the first has none before it.
          expect(linked.size).toBe(sent.length)
          expect(linked).toContain(undefined)
        },
      }
    },
  },

  {
    name: 'an erasure while codes are sent and verified leaves no old request open and no user behind',
    async open(database) {
      const fixture = await openRaceFixture(database)
      const { service, otp, developer, application: as, close } = fixture
      return {
        close,
        async round(_, random) {
          const phone = fixture.newPhone()
          const path = `/v1/users/${encodeURIComponent(phone)}`
          const { requestId } = await otp.sendOrThrow(as, { phone })
          const code = await otp.getCode(requestId)
          const responses = await runConcurrently(6, random, (index) => {
            if (index === 0) return service.request('DELETE', `${path}?erase=true`, { as: developer })
            return index === 1 ? otp.verify(as, requestId, code) : otp.send(as, { phone })
          })
          const counts = countByOutcome(responses)
          expect(counts['201']).toBe(4)
          expect((counts['200'] ?? 0) + (counts['410 OTP_CANCELED'] ?? 0)).toBe(2)
          const row = await fixture.findRow(requestId)
          expect([row?.phone, row?.status]).toEqual([
            'erased',
            expect.stringMatching(/^(verified|canceled)$/),
          ])
          expect((await service.request('GET', path, { as: developer })).status).toBe(404)
        },
      }
    },
  },

  {
    name: 'an unlocking among wrong guesses gives as many more of them as the budget has, and no others',
    async open(database) {
      const env = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off', OTPD_PHONE_CHECK_BUDGET: '5' }
      const fixture = await openRaceFixture(database, unlimitedPlans, env)
      const { service, otp, developer, application: as, close } = fixture
      return {
        close,
        async round(_, random) {
          const phone = fixture.newPhone()
          const path = `/v1/users/${encodeURIComponent(phone)}/unlock`
          const requests = await runConcurrently(4, random, () => otp.sendOrThrow(as, { phone }))
          const guess = async (index: number) => {
            const { requestId } = requests[index % 4] ?? { requestId: '' }
            return otp.verify(as, requestId, await otp.getWrongCode(requestId))
          }
          await runConcurrently(4, random, guess)
          const responses = await runConcurrently(11, random, (index) =>
            index === 10 ? service.request('POST', path, { as: developer }) : guess(index),
          )
          const later = await runConcurrently(6, random, guess)
          const compared = countByOutcome([...responses, ...later])['400 INVALID_CODE'] ?? 0
          expect(compared).toBeGreaterThanOrEqual(5)
          expect(compared).toBeLessThanOrEqual(6)
        },
      }
    },
  },
]
