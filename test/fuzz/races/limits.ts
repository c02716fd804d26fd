import { expect } from 'bun:test'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { enforced, openDevice } from '../../helpers/challenged-device.ts'
import { countByOutcome, createOtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlan, unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'
import { solveAltcha } from '../../helpers/solve-altcha.ts'
import { concurrentCalls, maybeStartLater, runConcurrently, type Race } from './race.ts'
import { openRaceFixture } from './fixture.ts'

const testPhone = (index: number) => `+1415555${1000 + index}`
const plansWithRates = (sendPerMinute: number, verifyPerMinute: number) => ({
  free: { ...unlimitedPlan, sendPerMinute, verifyPerMinute },
})
const errorCode = (error: unknown) => (error instanceof ServiceError ? error.code : String(error))

export const limitRaces: Race[] = [
  {
    name: `${concurrentCalls} concurrent sends: exactly five are admitted`,
    async open(database) {
      const { service, otp, developer, close } = await openRaceFixture(database, plansWithRates(5, 10))
      return {
        close,
        async round(_, random) {
          const application = await service.createApplication(developer)
          const responses = await runConcurrently(concurrentCalls, random, (index) =>
            otp.send(application, { phone: testPhone(index) }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 5,
            '429 RATE_LIMITED APP_RATE': concurrentCalls - 5,
          })
          const path = `/v1/otp?limit=200&appId=${application.id}`
          expect((await service.request<unknown[]>('GET', path, { as: developer })).data).toHaveLength(5)
        },
      }
    },
  },

  {
    name: `${concurrentCalls} concurrent sends from one device through two applications: exactly five are admitted`,
    async open(database) {
      const env = { OTPD_GUARD_MODE: 'enforce', OTPD_PHONE_SEND_BUDGET: 'off' }
      const service = await createTestService({ plans: unlimitedPlans, env, database })
      const otp = createOtpClient(service)
      return {
        close: service.dispose,
        async round(_, random) {
          const developer = await service.createDeveloper()
          const first = await service.createApplication(developer)
          const second = await service.createApplication(developer)
          const responses = await runConcurrently(concurrentCalls, random, (index) =>
            otp.send(index % 2 === 0 ? first : second, { phone: testPhone(index), deviceId: 'one' }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 5,
            '403 DESTINATION_BLOCKED': concurrentCalls - 5,
          })
        },
      }
    },
  },

  {
    name: `${concurrentCalls} concurrent sends with one solved challenge: exactly one passes`,
    async open(database) {
      const env = { ...enforced, OTPD_GUARD_CHALLENGE_KIND: 'altcha' }
      const service = await createTestService({ plans: unlimitedPlans, env, database })
      const otp = createOtpClient(service)
      return {
        close: service.dispose,
        async round(_, random) {
          const { send } = await openDevice(service, otp)
          const challenge = solveAltcha((await send()).error.metadata ?? {})
          const responses = await runConcurrently(concurrentCalls, random, () => send({ challenge }))
          expect(countByOutcome(responses)).toEqual({
            '201': 1,
            '403 CHALLENGE_REQUIRED CHALLENGE_FAILED': concurrentCalls - 1,
          })
        },
      }
    },
  },

  {
    name: `${concurrentCalls} verifications of different requests: exactly ten are checked`,
    async open(database) {
      const { service, otp, developer, newPhone, close } = await openRaceFixture(
        database,
        plansWithRates(0, 10),
      )
      return {
        close,
        async round(_, random) {
          const application = await service.createApplication(developer)
          // Phones of this round alone: their budgets of failed checks are shared by all applications.
          const phones = Array.from({ length: concurrentCalls / 5 }, newPhone)
          // Five verifications per request, so that no request exhausts its attempts before the limit is reached.
          const requests = await runConcurrently(concurrentCalls / 5, random, (index) =>
            otp.sendOrThrow(application, { phone: phones[index] }),
          )
          const responses = await runConcurrently(concurrentCalls, random, async (index) => {
            const requestId = requests[index % requests.length]?.requestId ?? ''
            return otp.verify(application, requestId, await otp.getWrongCode(requestId))
          })
          const refused = { '429 RATE_LIMITED APP_RATE': concurrentCalls - 10 }
          expect(countByOutcome(responses)).toEqual({ '400 INVALID_CODE': 10, ...refused })
        },
      }
    },
  },

  {
    name: `${concurrentCalls} concurrent projects: exactly the ten of the free plan are created`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const body = { name: 'raced' }
          const responses = await runConcurrently(concurrentCalls, random, () =>
            service.request('POST', '/v1/projects', { as, body }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 10,
            '403 PLAN_LIMIT_REACHED': concurrentCalls - 10,
          })
          expect(await service.store.read.projects.count(as.developer.id)).toBe(10)
        },
      }
    },
  },

  {
    name: `${concurrentCalls} concurrent applications: exactly the five of the free plan are created`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const projects = [await service.createProject(as), await service.createProject(as)]
          const responses = await runConcurrently(concurrentCalls, random, (index) => {
            const body = { name: 'raced', projectId: projects[index % 2]?.id, environment: 'live' }
            return service.request('POST', '/v1/applications', { as, body })
          })
          expect(countByOutcome(responses)).toEqual({
            '201': 5,
            '403 PLAN_LIMIT_REACHED': concurrentCalls - 5,
          })
          expect(await service.store.read.applications.count(as.developer.id)).toBe(5)
        },
      }
    },
  },

  {
    name: 'an application and the deletion of its project: exactly one of them is refused',
    async open(database) {
      const service = await createTestService({ database })
      const { applications, projects } = service.services
      const outcomeCounts = { 'created, CONFLICT': 0, 'NOT_FOUND, deleted': 0 }
      return {
        close: service.dispose,
        finish: () => expect(Math.min(...Object.values(outcomeCounts))).toBeGreaterThan(0),
        async round(_, random) {
          const as = await service.createDeveloper()
          const { id } = await service.createProject(as)
          const input = { name: 'raced', projectId: id, environment: 'live' as const }
          const [one, other] = await runConcurrently(2, random, async (index) => {
            await maybeStartLater(random)
            return index === 0
              ? applications.create(as.developer, input).then(() => 'created', errorCode)
              : projects.delete(as.developer, id).then(() => 'deleted', errorCode)
          })
          const outcome = `${one}, ${other}`
          expect(Object.keys(outcomeCounts)).toContain(outcome)
          if (outcome === 'created, CONFLICT' || outcome === 'NOT_FOUND, deleted') outcomeCounts[outcome]++
          const remaining = outcome === 'created, CONFLICT' ? 1 : 0
          expect(await service.store.read.applications.count(as.developer.id)).toBe(remaining)
          expect(await service.store.read.projects.count(as.developer.id)).toBe(remaining)
        },
      }
    },
  },
]
