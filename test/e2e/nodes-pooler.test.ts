import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { runBinary } from '../helpers/binary.ts'
import { hasPgbouncer, pooledStatements, startPgbouncer } from '../helpers/pgbouncer.ts'
import { createSharedDatabase, postgresUrl, type SharedDatabase } from '../helpers/shared-database.ts'

describe.skipIf(postgresUrl === undefined || !hasPgbouncer)('nodes behind a connection pooler', () => {
  let shared: SharedDatabase
  beforeAll(async () => {
    shared = await createSharedDatabase()
  })
  afterAll(() => shared.dispose())

  test.skipIf(!pooledStatements.includes('named'))(
    'that keeps prepared statements serve with them',
    async () => {
      for (const ignored of ['', 'options']) {
        const pooler = await startPgbouncer(shared.url, 'transaction', ignored)
        try {
          const node = await shared.startNode({ env: { ...shared.env, OTPD_DATABASE_URL: pooler.url } })
          expect((await fetch(`${node.url}/v1/health/ready`)).status).toBe(200)
          expect(await node.stop()).toBe(0)
        } finally {
          await pooler.stop()
        }
      }
    },
  )

  test.skipIf(pooledStatements.includes('named'))(
    'that keeps none are told so, and serve without them',
    async () => {
      const pooler = await startPgbouncer(shared.url, 'transaction')
      try {
        const env = { ...shared.env, OTPD_DATABASE_URL: pooler.url, OTPD_LISTEN: '127.0.0.1:0' }
        const { exitCode, stderr } = await runBinary(shared.folder, ['serve'], { env })
        expect(stderr).toContain('The pooler does not keep statements: OTPD_DATABASE_STATEMENTS=unnamed.')
        expect(exitCode).toBe(9)
        const node = await shared.startNode({ env: { ...env, OTPD_DATABASE_STATEMENTS: 'unnamed' } })
        const response = await fetch(`${node.url}/v1/health/ready`)
        expect(response.status).toBe(200)
        expect(await node.stop()).toBe(0)
      } finally {
        await pooler.stop()
      }
    },
  )

  test('that ends transactions after each statement are refused', async () => {
    const pooler = await startPgbouncer(shared.url, 'statement')
    try {
      const env = { ...shared.env, OTPD_DATABASE_URL: pooler.url, OTPD_DATABASE_STATEMENTS: 'unnamed' }
      const { exitCode, stderr } = await runBinary(shared.folder, ['serve'], { env })
      expect(stderr).toContain('A connection pooler ends transactions after each statement.')
      expect(exitCode).toBe(9)
    } finally {
      await pooler.stop()
    }
  })
})
