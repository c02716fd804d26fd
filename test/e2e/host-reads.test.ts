import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
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

/** Arguments of every command that works on a data directory, but of those that may create a database. */
const hostCommands: Record<string, string[]> = {
  'admin audit': [],
  'admin create': ['--email', 'ada@example.com', '--password-stdin'],
  'admin delete': ['ada@example.com', '--yes'],
  'admin disable': ['ada@example.com', '--yes'],
  'admin enable': ['ada@example.com'],
  'admin erase': ['+14155550100', '--yes'],
  'admin list': [],
  'admin reset-password': ['ada@example.com', '--password-stdin'],
  'admin reset-totp': ['ada@example.com'],
  'admin rotate-master-key': ['--yes'],
  'admin rotate-signing-key': [],
  'admin set-plan': ['ada@example.com', 'free'],
  'admin setup-token': [],
  'admin token': ['ada@example.com'],
  'admin unlock': ['+14155550100'],
  'audit verify': [],
  backup: [],
  'backup list': [],
  'backup verify': ['latest'],
  'config check': [],
  'config show': [],
  doctor: [],
  'guard status': [],
  'migrate status': [],
  'migrate to-postgres': ['--dry-run'],
  'migrate up': [],
  'provider list': [],
  'provider test': ['main', '+14155550100'],
  version: [],
}
/** These say something without a database. */
const needNone = [
  'backup list',
  'backup verify',
  'config check',
  'config show',
  'doctor',
  'provider list',
  'provider test',
  'version',
]

const listHostCommands = (command: Command, path: string[] = []): string[] => [
  ...(command.options.some(({ long }) => long === '--data-dir') ? [path.join(' ')] : []),
  ...command.commands.flatMap((sub) => listHostCommands(sub, [...path, sub.name()])),
]

describe('a directory without a database', () => {
  test('every command that works on a data directory is tried', () => {
    const found = listHostCommands(createProgram(processIo(), async () => {}))
    expect(found.toSorted()).toEqual([...Object.keys(hostCommands), 'restore', 'serve'].toSorted())
  })

  test.each(['is there, for everyone', 'is missing', 'has lost its database'])(
    'that %s stays as it is',
    async (state) => {
      const dataDir = join(home, 'shared')
      if (state !== 'is missing') mkdirSync(dataDir)
      if (state.startsWith('is there')) chmodSync(dataDir, 0o1777)
      if (state.startsWith('has lost'))
        for (const name of ['otpd.db-wal', 'master.key', 'otpd.db'])
          writeFileSync(join(dataDir, name), name === 'otpd.db' ? '' : 'acknowledged', { mode: 0o600 })
      const before = state === 'is missing' ? [] : stateOf(dataDir)
      const env = { OTPD_DATABASE_URL: 'postgres://postgres@127.0.0.1:1/otpd' }
      for (const [path, rest] of Object.entries(hostCommands)) {
        const args = [...path.split(' '), ...rest, '--json']
        const result = await runBinary(home, args, {
          input: 'correct horse battery',
          env: { OTPD_DATA_DIR: dataDir, ...(path === 'migrate to-postgres' && env) },
        })
        if (needNone.includes(path)) continue
        const error = JSON.parse(result.stderr.trim().split('\n').at(-1) ?? '').error
        expect([path, result.exitCode, error.code]).toEqual([path, 5, 'NO_DATABASE'])
        if (state.startsWith('has lost')) {
          expect(error.message).toContain('otpd.db is empty, next to master.key and otpd.db-wal')
          expect(error.hint).toMatch(/otpd restore latest.*otpd serve --new/)
        }
      }
      if (state === 'is missing') expect(existsSync(dataDir)).toBe(false)
      else expect(stateOf(dataDir)).toEqual(before)
    },
  )
})

test('commands that read change nothing in the directory of a stopped server, and see the same with a running one', async () => {
  const dataDir = join(home, 'data')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  await (await startServer({ home, dataDir })).stop()
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

  const login = ['login', '--server', server.url, '--email', 'ada@example.com', '--password-stdin']
  await runBinary(home, login, { input: 'correct horse battery' })
  chmodSync(dataDir, 0o700)
  const erase = ['admin', 'erase', '+14155550100', '--yes']
  const own = await runBinary(home, [...erase, '--data-dir', 'data'])
  expect(own).toEqual({ exitCode: 8, stdout: '▲ Nothing found for +14155550100 in ~/data\n', stderr: '' })
  // The default of root is a directory of the machine.
  const other = process.getuid?.() === 0 ? '/var/lib/otpd' : '~/.local/share/otpd'
  const { stderr } = await runBinary(home, ['admin', 'list'])
  expect(stderr.split('\n').slice(0, 2)).toEqual([
    `Data directory: ${other} (the default; --data-dir names another).`,
    `Warning: the server that you are logged in to, ${server.url}, uses another data directory: your account there, ada@example.com, is not in ${other}.`,
  ])
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
