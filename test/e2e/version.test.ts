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
  expect(await server.otpd(['version', '--data-dir', missing])).toMatchObject({
    exitCode: 5,
    stderr: expect.stringContaining(`no database in ${missing}`),
  })
  expect(existsSync(missing)).toBe(false)
  await server.stop()
})
