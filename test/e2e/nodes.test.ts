import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

  test('create the configured first account once, also if they start at once', async () => {
    const file = join(shared.folder, 'password')
    writeFileSync(file, 'correct horse battery', { mode: 0o600 })
    const env = { OTPD_ADMIN_EMAIL: 'ada@example.com', OTPD_ADMIN_PASSWORD_FILE: file }
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map((name) => shared.startNode({ env: { ...env, OTPD_NODE: name } })),
    )
    expect(await shared.query('select email from accounts')).toEqual([{ email: 'ada@example.com' }])
    await Promise.all(nodes.map((node) => node.stop()))
  })

  test('count the evidence of verified phones at their start, although an older node leads', async () => {
    const node = await shared.startNode()
    await node.stop()
    await shared.query(`delete from key_walks where walk = 'guard.evidence'`)
    // A node of 0.2.0 that is upgraded last renews this lease.
    await shared.query(`update leases set owner = 'old', until = 9e15 where name = 'leader'`)
    const upgraded = await shared.startNode()
    expect(await shared.query(`select position from key_walks where walk = 'guard.evidence'`)).toEqual([
      { position: null },
    ])
    await upgraded.stop()
  })
})
