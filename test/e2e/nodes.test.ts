import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSharedDatabase, postgresUrl, type SharedDatabase } from '../helpers/shared-database.ts'

describe.skipIf(postgresUrl === undefined)('nodes on PostgreSQL', () => {
  let shared: SharedDatabase
  beforeAll(async () => {
    shared = await createSharedDatabase()
  })
  afterAll(() => shared.dispose())

  test('start at once on an empty database, and keep nothing on disk', async () => {
    const nodes = await Promise.all([shared.startNode(), shared.startNode(), shared.startNode()])
    for (const node of nodes) {
      const response = await fetch(`${node.url}/v1/health/ready`)
      expect(response.status).toBe(200)
    }
    const keys = await shared.query<{ purpose: string }>('select purpose from data_keys')
    expect(keys).toHaveLength(7)
    const exitCodes = await Promise.all(nodes.map((node) => node.stop()))
    expect(exitCodes).toEqual([0, 0, 0])
  })
})
