import { beforeAll, expect, test } from 'bun:test'
import { describeEachDatabase, raceRounds } from '../helpers/databases.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

describeEachDatabase('projects', (database, kind) => {
  let service: TestService
  beforeAll(async () => {
    service = await createTestService({ database: database() })
  })

  test('thirty creates at once make exactly the ten of the free plan', async () => {
    for (let round = 0; round < raceRounds(kind); round++) {
      const as = await service.createDeveloper()
      const body = { name: 'raced' }
      const race = Array.from({ length: 30 }, () => service.request('POST', '/v1/projects', { as, body }))
      const statuses = (await Promise.all(race)).map(({ status }) => status)
      expect(statuses.filter((status) => status === 201)).toHaveLength(10)
      expect(statuses.filter((status) => status === 403)).toHaveLength(20)
      expect(await service.store.read.projects.count(as.developer.id)).toBe(10)
    }
    await service.dispose()
  }, 120_000)
})
