import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary, startServer } from '../helpers/binary.ts'

let home: string
beforeEach(() => void (home = mkdtempSync(join(tmpdir(), 'otpd-reads-'))))
afterEach(() => rmSync(home, { recursive: true, force: true }))

const readers = [
  ['admin', 'list'],
  ['admin', 'audit'],
  ['guard', 'status'],
]
const others = [['provider', 'list'], ['migrate', 'status'], ['doctor'], ['config', 'show']]
const run = (args: string[], dataDir: string, env = {}) =>
  runBinary(home, [...args, '--json'], { env: { OTPD_DATA_DIR: dataDir, ...env } })

/** Everything that a command could have changed in a directory. Readers of a write-ahead log mark their place in `-shm`. */
const stateOf = (folder: string) => [
  statSync(folder).mode,
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted()
    .map((path) => {
      const { mode, mtimeMs, size } = statSync(path)
      return [path, mode, path.endsWith('-shm') ? null : mtimeMs, size]
    }),
]

describe('a directory without a database', () => {
  test.each([0o1777, 0o755])(
    'of mode %o is an error for commands that read, and stays as it is',
    async (mode) => {
      const shared = join(home, 'shared')
      mkdirSync(shared)
      chmodSync(shared, mode)
      const before = stateOf(shared)
      for (const args of readers) {
        const { exitCode, stderr } = await run(args, shared)
        expect([args, exitCode, JSON.parse(stderr).error.code]).toEqual([args, 5, 'NO_DATABASE'])
      }
      for (const args of others) await run(args, shared)
      expect(stateOf(shared)).toEqual(before)
    },
  )

  test('is not created', async () => {
    const missing = join(home, 'missing', 'data')
    for (const args of [...readers, ...others]) await run(args, missing)
    expect(existsSync(join(home, 'missing'))).toBe(false)
  })
})

test('commands that read change nothing in the directory of a stopped server, and see the same with a running one', async () => {
  const dataDir = join(home, 'data')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  const create = ['admin', 'create', '--email', 'ada@example.com', '--name', 'Ada', '--password-stdin']
  await runBinary(home, create, { env: { OTPD_DATA_DIR: dataDir }, input: 'correct horse battery' })
  expect(statSync(dataDir).mode & 0o7777).toBe(0o755)
  const before = stateOf(dataDir)
  const answers = async () => {
    const found: string[] = []
    for (const args of readers.slice(0, 2)) {
      const { exitCode, stdout, stderr } = await run(args, dataDir)
      expect([exitCode, stderr]).toEqual([0, ''])
      found.push(stdout)
    }
    return found
  }
  const stopped = await answers()
  expect(stopped.join('')).toContain('ada@example.com')
  expect((await run(['guard', 'status'], dataDir)).exitCode).toBe(0)
  for (const args of others) await run(args, dataDir)
  expect(stateOf(dataDir)).toEqual(before)

  const server = await startServer({ home, dataDir })
  expect(await answers()).toEqual(stopped)
  await server.stop()
})

test('a server that is given a shared directory keeps its mode, and hides its own files', async () => {
  const shared = join(home, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o1777)
  const server = await startServer({ home, dataDir: shared })
  expect(statSync(shared).mode & 0o7777).toBe(0o1777)
  for (const name of readdirSync(shared)) {
    if (!name.startsWith('otpd.lock'))
      expect([name, statSync(join(shared, name)).mode & 0o077]).toEqual([name, 0])
  }
  expect(await server.stop()).toBe(0)
})
