import { expect, test } from 'bun:test'
import { openPostgres } from '../../../src/store/postgres/database.ts'
import { startFakePostgres } from '../../helpers/fake-postgres.ts'

// Codes of a server that shuts down, has no room, was closed, renamed, or accepts the role, its password or its address no more.
test.each([
  ['57P03', '57P03'],
  ['53300', '53300'],
  ['55000', 'POSTGRES_REFUSED_55000'],
  ['3D000', 'POSTGRES_REFUSED_3D000'],
  ['28000', 'POSTGRES_REFUSED_28000'],
  ['42501', 'POSTGRES_REFUSED_42501'],
])('a server that refuses connections with %s is unavailable, to reads too', async (code, cause) => {
  const server = await startFakePostgres({ code })
  const causes: string[] = []
  const url = `postgres://u:hunter2@127.0.0.1:${server.port}/otpd`
  const database = openPostgres(url, { onUnavailable: (one) => causes.push(one) })
  try {
    const written: unknown = await database.write(async () => {}).catch((error: unknown) => error)
    const read: unknown = await database.read
      .select()
      .from(database.tables.leases)
      .catch((error: unknown) => database.convertError(error))
    for (const error of [written, read])
      expect(error).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
    expect(causes).toEqual([cause, cause])
  } finally {
    await database.close()
    await server.stop()
  }
})
