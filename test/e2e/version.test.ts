import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'

test('otpd version compares itself with a database, and creates nothing', async () => {
  const server = await startServer()
  const show = async (...args: string[]) => {
    const { stdout, exitCode } = await server.otpd(['version', '--json', ...args])
    expect(exitCode).toBe(0)
    return JSON.parse(stdout).data
  }
  const { schema, ...others } = await show()
  expect(others.database).toBeUndefined()
  expect((await show('--data-dir', server.dataDir)).database).toEqual({ schema, pending: [] })
  const missing = join(server.home, 'missing')
  const { database } = await show('--data-dir', missing)
  expect([database.schema, database.pending.at(-1)]).toEqual([null, schema])
  expect(existsSync(missing)).toBe(false)
  await server.stop()
})
