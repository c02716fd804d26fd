import { expect } from 'bun:test'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { tally } from '../../helpers/otp.ts'
import { createTestService } from '../../helpers/service.ts'
import { atOnce, racers, type Race } from './race.ts'
import { openRaceScene, roomy } from './scene.ts'

const phoneOf = (index: number) => `+1415555${1000 + index}`
const rated = (sendPerMinute: number, verifyPerMinute: number) => ({
  free: { ...roomy.free, sendPerMinute, verifyPerMinute },
})
const codeOf = (error: unknown) => (error instanceof ServiceError ? error.code : String(error))

export const limitRaces: Race[] = [
  {
    name: `${racers} sends at once: exactly five go out`,
    async open(database) {
      const { service, otp, developer, close } = await openRaceScene(database, rated(5, 10))
      return {
        close,
        async round(_, random) {
          const application = await service.createApplication(developer)
          const answers = await atOnce(racers, random, (index) =>
            otp.send(application, { phone: phoneOf(index) }),
          )
          expect(tally(answers)).toEqual({ '201': 5, '429 RATE_LIMITED APP_RATE': racers - 5 })
          const path = `/v1/otp?limit=200&appId=${application.id}`
          expect((await service.request<unknown[]>('GET', path, { as: developer })).data).toHaveLength(5)
        },
      }
    },
  },

  {
    name: `${racers} verifications over different requests: exactly ten are looked at`,
    async open(database) {
      const { service, otp, developer, close } = await openRaceScene(database, rated(0, 10))
      return {
        close,
        async round(_, random) {
          const application = await service.createApplication(developer)
          // Five verifications of each, so that no request runs out of attempts before the limit is met.
          const requests = await atOnce(racers / 5, random, (index) =>
            otp.sent(application, { phone: phoneOf(index) }),
          )
          const answers = await atOnce(racers, random, async (index) => {
            const requestId = requests[index % requests.length]?.requestId ?? ''
            return otp.verify(application, requestId, await otp.wrongCodeOf(requestId))
          })
          const refused = { '429 RATE_LIMITED APP_RATE': racers - 10 }
          expect(tally(answers)).toEqual({ '400 INVALID_CODE': 10, ...refused })
        },
      }
    },
  },

  {
    name: `${racers} projects at once: exactly the ten of the free plan`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const body = { name: 'raced' }
          const answers = await atOnce(racers, random, () =>
            service.request('POST', '/v1/projects', { as, body }),
          )
          expect(tally(answers)).toEqual({ '201': 10, '403 PLAN_LIMIT_REACHED': racers - 10 })
          expect(await service.store.read.projects.count(as.developer.id)).toBe(10)
        },
      }
    },
  },

  {
    name: `${racers} applications at once: exactly the five of the free plan`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const projects = [await service.createProject(as), await service.createProject(as)]
          const answers = await atOnce(racers, random, (index) => {
            const body = { name: 'raced', projectId: projects[index % 2]?.id, environment: 'live' }
            return service.request('POST', '/v1/applications', { as, body })
          })
          expect(tally(answers)).toEqual({ '201': 5, '403 PLAN_LIMIT_REACHED': racers - 5 })
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
      const seen = { 'created, CONFLICT': 0, 'NOT_FOUND, deleted': 0 }
      return {
        close: service.dispose,
        finish: () => expect(Math.min(...Object.values(seen))).toBeGreaterThan(0),
        async round(_, random) {
          const as = await service.createDeveloper()
          const { id } = await service.createProject(as)
          const input = { name: 'raced', projectId: id, environment: 'live' as const }
          const [one, other] = await atOnce(2, random, (index) =>
            index === 0
              ? applications.create(as.developer, input).then(() => 'created', codeOf)
              : projects.delete(as.developer, id).then(() => 'deleted', codeOf),
          )
          const outcome = `${one}, ${other}`
          expect(Object.keys(seen)).toContain(outcome)
          if (outcome === 'created, CONFLICT' || outcome === 'NOT_FOUND, deleted') seen[outcome]++
          const left = outcome === 'created, CONFLICT' ? 1 : 0
          expect(await service.store.read.applications.count(as.developer.id)).toBe(left)
          expect(await service.store.read.projects.count(as.developer.id)).toBe(left)
        },
      }
    },
  },
]
