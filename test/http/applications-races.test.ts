import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ServiceError } from '../../src/domain/errors.ts'
import { describeEachDatabase, raceRounds } from '../helpers/databases.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

describeEachDatabase('applications', (database, kind) => {
  let service: TestService
  beforeAll(async () => {
    service = await createTestService({ database: database() })
  })
  afterAll(() => service.dispose())

  test('thirty creates at once make exactly the five of the free plan', async () => {
    for (let round = 0; round < raceRounds(kind); round++) {
      const as = await service.createDeveloper()
      const projects = [await service.createProject(as), await service.createProject(as)]
      const race = Array.from({ length: 30 }, (_, i) => {
        const body = { name: 'raced', projectId: projects[i % 2]?.id, environment: 'live' }
        return service.request('POST', '/v1/applications', { as, body })
      })
      const statuses = (await Promise.all(race)).map(({ status }) => status)
      expect(statuses.filter((status) => status === 201)).toHaveLength(5)
      expect(statuses.filter((status) => status === 403)).toHaveLength(25)
      expect(await service.store.read.applications.count(as.developer.id)).toBe(5)
    }
  }, 120_000)

  test('a create and the deletion of its project: exactly one of them is refused', async () => {
    const { applications, projects } = service.services
    const seen = { 'created, CONFLICT': 0, 'NOT_FOUND, deleted': 0 }
    for (let round = 0; round < raceRounds(kind); round++) {
      const as = await service.createDeveloper()
      const { id } = await service.createProject(as)
      const input = { name: 'raced', projectId: id, environment: 'live' as const }
      const create = () => applications.create(as.developer, input).then(() => 'created', codeOf)
      const remove = () => projects.delete(as.developer, id).then(() => 'deleted', codeOf)
      // Each starts first in half of the rounds, so that each of them wins some.
      const first = round % 2 === 0 ? create() : remove()
      const second = round % 2 === 0 ? remove() : create()
      const [one, other] = await Promise.all([first, second])
      const outcome = round % 2 === 0 ? `${one}, ${other}` : `${other}, ${one}`
      expect(Object.keys(seen)).toContain(outcome)
      if (outcome === 'created, CONFLICT' || outcome === 'NOT_FOUND, deleted') seen[outcome]++
      const left = outcome === 'created, CONFLICT' ? 1 : 0
      expect(await service.store.read.applications.count(as.developer.id)).toBe(left)
      expect(await service.store.read.projects.count(as.developer.id)).toBe(left)
    }
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(0)
  }, 120_000)
})

const codeOf = (error: unknown) => (error instanceof ServiceError ? error.code : String(error))
