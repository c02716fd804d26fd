import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createProgram } from '../../cli/program.ts'
import { processIo } from '../../cli/terminal/terminal.ts'
import { binaryPath, runToEnd, startServer } from '../helpers/binary.ts'
import { runCommand } from '../helpers/run-command.ts'

let home: string
beforeEach(() => void (home = mkdtempSync(join(tmpdir(), 'otpd-reads-'))))
afterEach(() => rmSync(home, { recursive: true, force: true }))

const readers = [
  ['admin', 'list'],
  ['admin', 'audit'],
  ['guard', 'status'],
]
const others = [['provider', 'list'], ['migrate', 'status'], ['doctor'], ['config', 'show']]
const run = (args: string[], dataDir: string) =>
  runCommand(home, [...args, '--json'], { env: { OTPD_DATA_DIR: dataDir } })

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
  alerts: [],
  'alerts test': [],
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
  // It asks for a running server first.
  'alerts test',
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
    expect(found.toSorted()).toEqual([...Object.keys(hostCommands), 'restore', 'serve', 'upgrade'].toSorted())
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
        const result = await runCommand(home, args, {
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

test('admin create and admin list print bare ids with -q, and provider list names', async () => {
  const dataDir = join(home, 'data')
  await (await startServer({ home, dataDir })).stop()
  const ids = async (args: string[]) =>
    (await runCommand(home, [...args, '-q', '--data-dir', dataDir], { input: 'correct horse battery' }))
      .stdout
  const created = await ids(['admin', 'create', '--email', 'ada@example.com', '--password-stdin'])
  expect(created).toMatch(/^dev_\w+\n$/)
  expect(await ids(['admin', 'list'])).toBe(created)
  expect(await ids(['provider', 'list'])).toBe('')
  const config = join(home, 'providers.toml')
  const gateway = ['kind = "http-template"', 'url = "https://sms.example/send"', `body = '{{to}} {{text}}'`]
  writeFileSync(
    config,
    ['a', 'b'].flatMap((name) => ['[[providers]]', `name = "${name}"`, ...gateway]).join('\n'),
  )
  expect(await ids(['provider', 'list', '--config', config])).toBe('a\nb\n')
})

test('a directory that this user cannot read, or that is a file, is an error that says so', async () => {
  const dataDir = join(home, 'closed')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'otpd.db'), 'x', { mode: 0o600 })
  chmodSync(home, 0o711)
  // Root reads everything.
  const isRoot = process.getuid?.() === 0
  const asOther = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  chmodSync(dataDir, isRoot ? 0o700 : 0)
  const commands = [
    ['admin', 'list'],
    ['backup'],
    ['backup', 'list'],
    ['restore', 'latest'],
    ['migrate', 'status'],
    ['audit', 'verify'],
    ['provider', 'list'],
    ['version'],
  ]
  for (const command of commands) {
    const args = [binaryPath, ...command, '--json', '--data-dir']
    const closed = await runToEnd([...asOther, ...args, dataDir], { env: { PATH: '/usr/bin', HOME: home } })
    expect([command, JSON.parse(closed.stderr).error]).toMatchObject([
      command,
      {
        code: 'FILE_NOT_READABLE',
        message: expect.stringMatching(/^This user cannot read \S+ \(permission denied, EACCES\)\.$/),
        hint: isRoot ? "Run the command as the owner: sudo -u '#0' otpd …" : expect.any(String),
      },
    ])
    for (const [path, code] of [
      [binaryPath, 'NOT_A_DIRECTORY'],
      // Without the right to execute, which a directory would need.
      [join(dataDir, 'otpd.db'), 'NOT_A_DIRECTORY'],
      ['x'.repeat(300), 'FILE_NOT_READABLE'],
    ] as const) {
      const refused = await runToEnd([...args, path], { env: { PATH: '/usr/bin', HOME: home } })
      expect([command, path, JSON.parse(refused.stderr).error.code]).toEqual([command, path, code])
    }
  }
  chmodSync(dataDir, 0o700)
})

test('a backup of a damaged database, or without the master key, is refused with what to do', async () => {
  const dataDir = join(home, 'data')
  await (await startServer({ home, dataDir })).stop()
  const json = async (args: string[], dir = dataDir) => {
    const { stdout, stderr } = await runCommand(home, [...args, '--json', '--data-dir', dir])
    return JSON.parse(stdout || (stderr.trim().split('\n').at(-1) ?? ''))
  }
  const damaged = join(home, 'damaged')
  mkdirSync(damaged)
  writeFileSync(join(damaged, 'otpd.db'), 'not a database '.repeat(1000), { mode: 0o600 })
  const remedy = expect.stringMatching(/otpd restore (--data-dir \S+ )?latest/)
  expect(await json(['backup'], damaged)).toMatchObject({ error: { code: 'START_REFUSED', hint: remedy } })
  const whole = join(home, 'whole.db')
  await json(['backup', whole])
  copyFileSync(whole, join(damaged, 'otpd.db'))
  for (const args of [['backup'], ['admin', 'list'], ['audit', 'verify']])
    expect(await json(args, damaged)).toMatchObject({
      error: { message: 'The master key of the database is missing.' },
    })
  const key = Buffer.from(readFileSync(join(dataDir, 'master.key'), 'utf8'), 'base64')
  writeFileSync(join(damaged, 'master.key'), `${key.toString('hex')}\n`, { mode: 0o600 })
  // A command that sends nothing does not need the secrets of the server's providers.
  const config = join(home, 'providers.toml')
  const lines = ['[[providers]]', 'name = "main"', 'kind = "http"', 'url = "https://sms.example"']
  writeFileSync(config, [...lines, 'secretEnv = "GATEWAY_SECRET"'].join('\n'))
  expect(await json(['admin', 'list', '--config', config], damaged)).toEqual({ data: [] })
  const test = ['provider', 'test', 'main', '+14155550100', '--config', config]
  expect(await json(test)).toMatchObject({ error: { code: 'CONFIG_INVALID' } })

  // `backup` has the flags of `backup list`, too.
  await json(['backup'])
  expect((await json(['backup', 'list'])).data).toHaveLength(1)
  expect(await json(['backup', 'list'], damaged)).toEqual({ data: [] })
  const place = join(home, 'none')
  const unmounted = { error: { message: `There is no folder ${place}.` } }
  expect(await json(['backup', 'list', '--from', place])).toMatchObject(unmounted)
})

test('commands that read change nothing in the directory of a stopped server, and see the same with a running one', async () => {
  const dataDir = join(home, 'data')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  await (await startServer({ home, dataDir })).stop()
  const create = ['admin', 'create', '--email', 'ada@example.com', '--name', 'Ada', '--password-stdin']
  await runCommand(home, create, { env: { OTPD_DATA_DIR: dataDir }, input: 'correct horse battery' })
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
  await runCommand(home, login, { input: 'correct horse battery' })
  chmodSync(dataDir, 0o700)
  const erase = ['admin', 'erase', '+14155550100', '--yes']
  const own = await runCommand(home, [...erase, '--data-dir', 'data'])
  expect(own).toEqual({ exitCode: 8, stdout: '▲ Nothing found for +14155550100 in ~/data\n', stderr: '' })
  // The default of root is a directory of the machine.
  const other = process.getuid?.() === 0 ? '/var/lib/otpd' : '~/.local/share/otpd'
  const { stderr } = await runCommand(home, ['admin', 'list'], { env: { STATE_DIRECTORY: '' } })
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
