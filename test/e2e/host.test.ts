import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { binaryPath, runBinary, startServer, type RunningServer } from '../helpers/binary.ts'

let home: string
let dataDir: string
let server: RunningServer | undefined
const password = 'correct horse battery'

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'otpd-host-'))
  dataDir = join(home, 'data')
  server = await start()
})
afterAll(async () => {
  await server?.stop()
  rmSync(home, { recursive: true, force: true })
})

const start = () => startServer({ home, dataDir, env: { OTPD_SEND_PER_MINUTE: '0' } })

async function stop() {
  expect(await server?.stop()).toBe(0)
  server = undefined
}

const otpd = (args: string[], options: Parameters<typeof runBinary>[2] = {}) =>
  runBinary(home, args, {
    ...options,
    env: { OTPD_DATA_DIR: dataDir, ...(server && { OTPD_SERVER: server.url }), ...options.env },
  })

async function json(args: string[], options: Parameters<typeof runBinary>[2] = {}) {
  const result = await otpd([...args, '--json'], options)
  if (result.exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${result.exitCode} ${result.stderr}`)
  return JSON.parse(result.stdout).data
}

function requestIds(database: string): string[] {
  const connection = new SqliteConnection(database, { readonly: true })
  try {
    const rows = connection.query<{ id: string }, []>('select id from otp_requests order by id').all()
    return rows.map(({ id }) => id)
  } finally {
    connection.close()
  }
}

/** Sends codes until stopped, and records the acknowledged ones. */
function startLoad(url: string, envFile: string) {
  const credential = (name: string) => new RegExp(`${name}=(\\S+)`).exec(envFile)?.[1] ?? ''
  const headers = {
    'x-client-id': credential('OTPD_CLIENT_ID'),
    'x-client-secret': credential('OTPD_CLIENT_SECRET'),
    'x-api-key': credential('OTPD_API_KEY'),
    'content-type': 'application/json',
  }
  const acknowledged: string[] = []
  const controller = new AbortController()
  const sender = async (senderIndex: number) => {
    for (let index = 0; !controller.signal.aborted; index += 1) {
      const phone = `+1415${String(2_000_000 + senderIndex * 100_000 + index)}`
      const response = await fetch(`${url}/v1/otp/send`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ phone }),
      })
      const { data } = JSON.parse(await response.text())
      if (response.ok) acknowledged.push(data.requestId)
    }
  }
  const senders = [1, 2, 3, 4].map(sender)
  return {
    acknowledged,
    async until(count: number) {
      while (acknowledged.length < count) await Bun.sleep(5)
    },
    async end() {
      controller.abort()
      await Promise.all(senders)
    },
  }
}

/** Parses the last line, which follows the steps of long work. */
const lastLine = (text: string) => JSON.parse(text.trim().split('\n').at(-1) ?? '')

describe('a backup of a running server', () => {
  test('has every request acknowledged before it, and restores to exactly its rows', async () => {
    const input = { input: password }
    await json(['admin', 'create', '--email', 'ada@example.com', '--password-stdin'], input)
    expect((await otpd(['login', '--email', 'ada@example.com', '--password-stdin'], input)).exitCode).toBe(0)
    await json(['project', 'create', 'shop'])
    const envFile = join(home, '.env.otpd')
    await json(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', envFile])

    const traffic = startLoad(server?.url ?? '', readFileSync(envFile, 'utf8'))
    await traffic.until(200)
    const before = [...traffic.acknowledged]
    const file = join(home, 'monday.db')
    // The form that scripts use.
    const result = await runBinary(home, ['backup', 'monday.db', '--data-dir', dataDir, '--json'])
    const during = traffic.acknowledged.length
    await traffic.until(during + 20)
    await traffic.end()

    expect(result.exitCode).toBe(0)
    expect(lastLine(result.stderr)).toMatchObject({ step: 'authenticating' })
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
    const bytes = readFileSync(file).length
    const { rows, ...backupInfo }: { rows: { otpRequests: number } } = JSON.parse(result.stdout).data
    expect(backupInfo).toEqual({ file, bytes, sha256, pruned: [], holdsMasterKey: false })
    expect(rows).toMatchObject({ accounts: 1, applications: expect.any(Number) })
    expect(rows.otpRequests).toBe(requestIds(file).length)
    expect(readFileSync(file).includes(readFileSync(join(dataDir, 'master.key'), 'utf8').trim())).toBe(false)
    const copied = requestIds(file)
    expect(new Set(copied).isSupersetOf(new Set(before))).toBe(true)

    const refused = await otpd(['restore', file, '--yes', '--json'])
    expect(refused).toMatchObject({ exitCode: 6, stdout: '' })
    expect(JSON.parse(refused.stderr).error).toMatchObject({ code: 'SERVER_RUNNING' })
    await stop()

    const after = requestIds(join(dataDir, 'otpd.db'))
    expect(after.length).toBeGreaterThan(copied.length)
    const restored = await json(['restore', file, '--yes'])
    expect(restored).toEqual({
      file,
      keptAs: expect.stringContaining('before-restore-'),
      pendingMigrations: [],
    })
    server = await start()
    expect(requestIds(join(dataDir, 'otpd.db'))).toEqual(copied)
    expect(requestIds(restored.keptAs)).toEqual(after)
    // The new port is another origin, so log in again, with the restored account.
    expect((await otpd(['login', '--email', 'ada@example.com', '--password-stdin'], input)).exitCode).toBe(0)
    expect((await json(['app', 'list']))[0].name).toBe('web')
  }, 300_000)

  test('prints file, size and checksum, and chooses a file name', async () => {
    const result = await otpd(['backup'])
    expect(result.exitCode).toBe(0)
    expect(result.stdout).toMatch(
      /✓ Backup .*\/backups\/otpd-\d{4}-.*\.db\n {2}Size .*\n {2}SHA-256 {3}[0-9a-f]{64}\n/,
    )
    expect(result.stderr).toContain('The master key is not in it')
  })

  test('overwrites nothing, and needs a database', async () => {
    writeFileSync(join(home, 'dear'), 'dear')
    expect(await otpd(['backup', 'dear'])).toMatchObject({ exitCode: 2, stdout: '' })
    expect(readFileSync(join(home, 'dear'), 'utf8')).toBe('dear')
    const noDatabaseResult = await otpd(['backup', '--data-dir', join(home, 'none')])
    expect(noDatabaseResult.exitCode).toBe(5)
    expect(existsSync(join(home, 'none'))).toBe(false)
  })
})

describe('a restore', () => {
  test('rejects text, a truncated file, a newer one and one of another key, and needs --yes', async () => {
    if (server) await stop()
    const goodBackup = join(home, 'good.db')
    await json(['backup', goodBackup])
    const folder = join(home, 'folder')
    mkdirSync(folder)
    const { file } = await json(['backup', folder])
    expect(file).toMatch(/\/folder\/otpd-[\dTZ-]+\.db$/)
    for (const args of [[`${folder}/latest`], ['--from', folder], [basename(file), '--from', folder]])
      expect(await json(['restore', ...args, '--yes'])).toMatchObject({ file })
    const present = readFileSync(join(dataDir, 'otpd.db'))
    const changed = (name: string, sql: string) => {
      const path = join(home, name)
      copyFileSync(goodBackup, path)
      const connection = new SqliteConnection(path)
      connection.run(sql)
      connection.close()
      return path
    }
    writeFileSync(join(home, 'text.db'), 'hello '.repeat(1000))
    writeFileSync(join(home, 'cut.db'), readFileSync(goodBackup).subarray(0, -4096))
    const cases = {
      BACKUP_INVALID: [join(home, 'text.db'), join(home, 'cut.db')],
      BACKUP_SCHEMA_CHANGED: [
        changed(
          'trigger.db',
          'create trigger t after insert on login_failures begin delete from login_failures; end',
        ),
      ],
      BACKUP_OF_ANOTHER_VERSION: [
        changed(
          'newer.db',
          `insert into migrations (name, checksum, applied_at) values ('9999_next', 'x', 1)`,
        ),
      ],
      BACKUP_OF_ANOTHER_KEY: [changed('key.db', `update data_keys set master_key = 'x'`)],
    }
    for (const [code, files] of Object.entries(cases)) {
      for (const file of files) {
        const result = await otpd(['restore', file, '--unauthenticated', '--yes', '--json'])
        expect(result).toMatchObject({ exitCode: 6, stdout: '' })
        expect(lastLine(result.stderr).error).toMatchObject({ code, hint: expect.any(String) })
      }
    }
    const [newer = ''] = cases.BACKUP_OF_ANOTHER_VERSION
    const unauthenticated = await otpd(['restore', newer, '--yes', '--json'])
    expect(lastLine(unauthenticated.stderr).error.code).toBe('BACKUP_NOT_AUTHENTICATED')
    copyFileSync(`${goodBackup}.hmac`, `${newer}.hmac`)
    const forged = await otpd(['restore', newer, '--unauthenticated', '--yes', '--json'])
    expect(lastLine(forged.stderr).error.code).toBe('BACKUP_FORGED')
    expect((await otpd(['restore', goodBackup])).exitCode).toBe(2)
    for (const missing of [[join(home, 'nothing.db')], ['latest', '--from', join(home, 'none')]])
      expect((await otpd(['restore', ...missing])).exitCode).toBe(5)
    expect((await otpd(['restore'])).exitCode).toBe(2)
    const empty = await otpd(['restore', goodBackup, '--yes', '--json', '--data-dir', join(home, 'empty')])
    expect(lastLine(empty.stderr).error.code).toBe('MASTER_KEY_MISSING')
    expect(readFileSync(join(dataDir, 'otpd.db')).equals(present)).toBe(true)
  })

  test('that is killed leaves the old database or the new one, intact', async () => {
    if (server) await stop()
    const folder = join(home, 'killed')
    mkdirSync(folder, { mode: 0o700 })
    const files = { database: join(folder, 'otpd.db'), old: join(home, 'old.db'), new: join(home, 'new.db') }
    copyFileSync(join(dataDir, 'master.key'), join(folder, 'master.key'))
    await json(['backup', files.old])
    // The backups are changed below.
    rmSync(`${files.old}.hmac`)
    copyFileSync(files.old, files.new)
    // Large enough for a kill to hit any stage of the restore.
    for (const [name, path] of Object.entries({ old: files.old, new: files.new })) {
      const connection = new SqliteConnection(path)
      connection.run(`insert into meta (name, value) values ('mark', '${name}')`)
      connection.run(
        `with recursive n(i) as (select 1 union all select i + 1 from n where i < 8000)
         insert into meta (name, value) select 'filling ' || i, hex(randomblob(500)) from n`,
      )
      connection.close()
    }
    const mark = () => {
      const connection = new SqliteConnection(files.database, { readonly: true })
      try {
        expect(connection.query('PRAGMA integrity_check').values()).toEqual([['ok']])
        return connection.query<{ value: string }, []>(`select value from meta where name = 'mark'`).get()
          ?.value
      } finally {
        connection.close()
      }
    }
    const restore = (file: string) =>
      Bun.spawn([binaryPath, 'restore', file, '--unauthenticated', '--yes', '--data-dir', folder], {
        env: { HOME: home },
        stdout: 'ignore',
        stderr: 'ignore',
      })
    const startedAt = performance.now()
    expect(await restore(files.old).exited).toBe(0)
    const wholeMs = performance.now() - startedAt

    const seen = new Set<string>()
    const steps = 6
    // Starts at 0 ms, so that some kill finds the old database however long the first restore took.
    for (let step = 0; step <= steps; step += 1) {
      const child = restore(files.new)
      await Bun.sleep((wholeMs * 1.2 * step) / steps)
      child.kill('SIGKILL')
      await child.exited
      const found = mark()
      expect(['old', 'new']).toContain(found ?? 'none')
      seen.add(found ?? 'none')
      if (found === 'new') expect(await restore(files.old).exited).toBe(0)
    }
    expect(seen).toContain('old')
    expect(await restore(files.new).exited).toBe(0)
    expect(mark()).toBe('new')
  }, 300_000)
})

describe('accounts, with a running server', () => {
  const whoami = async (token: string) =>
    (await otpd(['whoami', '--json'], { env: { OTPD_TOKEN: token } })).exitCode
  const issueToken = async (account: string) =>
    (await otpd(['admin', 'token', account, '--quiet'])).stdout.trim()
  const create = (email: string) =>
    json(['admin', 'create', '--email', email, '--password-stdin'], { input: password })

  test('get a token without a login, which stays valid after the signing key is rotated', async () => {
    server ??= await start()
    await create('bob@example.com')
    const token = await issueToken('bob@example.com')
    expect(await whoami(token)).toBe(0)
    expect((await json(['admin', 'token', 'bob@example.com'])).idToken).toStartWith('ey')
    const { kid } = await json(['admin', 'rotate-signing-key'])
    const later = await issueToken('bob@example.com')
    expect(Buffer.from(later.split('.')[0] ?? '', 'base64url').toString()).toContain(kid)
    expect([await whoami(token), await whoami(later)]).toEqual([0, 0])
    expect((await otpd(['admin', 'token', 'nobody@example.com'])).exitCode).toBe(5)
  })

  test('are deleted with their sessions, and the output says what is kept', async () => {
    server ??= await start()
    const { id } = await create('carol@example.com')
    const input = { input: password }
    const otherConfigEnv = { OTPD_CONFIG_DIR: join(home, 'carol') }
    const as = (args: string[], options = {}) => otpd(args, { env: otherConfigEnv, ...options })
    await as(['login', '--email', 'carol@example.com', '--password-stdin'], input)
    expect((await as(['project', 'create', 'hers'])).exitCode).toBe(0)
    const token = await issueToken(id)
    expect((await otpd(['admin', 'delete', 'carol@example.com'])).exitCode).toBe(2)
    const result = await otpd(['admin', 'delete', 'carol@example.com', '--yes'])
    expect(result).toMatchObject({ exitCode: 0, stdout: '✓ Deleted carol@example.com\n' })
    // However wide the terminal is.
    expect(result.stderr.replaceAll(/\s+/g, ' ')).toContain(
      `Kept under ${id}: projects (1), applications (0)`,
    )
    expect(await whoami(token)).toBe(4)
    expect((await as(['project', 'list'])).exitCode).toBe(4)
    expect((await as(['login', '--email', 'carol@example.com', '--password-stdin'], input)).exitCode).toBe(4)
    expect((await otpd(['admin', 'delete', 'carol@example.com', '--yes'])).exitCode).toBe(5)
  })
})

describe('migrations', () => {
  test('are listed, and are applied while no server runs', async () => {
    server ??= await start()
    const { applied, pending } = await json(['migrate', 'status'])
    expect(applied[0]).toBe('0001_initial')
    expect(pending).toEqual([])
    expect((await otpd(['migrate', 'status'])).stdout).toMatch(/^MIGRATION +STATUS\n0001_initial +applied\n/)
    const refused = await otpd(['migrate', 'up', '--json'])
    expect(refused.exitCode).toBe(6)
    expect(JSON.parse(refused.stderr).error.code).toBe('SERVER_RUNNING')
    await stop()
    expect(await json(['migrate', 'up'])).toEqual({ migrated: [], backup: null })
  })

  test('of a newer database are an error', async () => {
    const newer = join(home, 'newer')
    mkdirSync(newer, { mode: 0o700 })
    copyFileSync(join(home, 'newer.db'), join(newer, 'otpd.db'))
    const result = await otpd(['migrate', 'status', '--data-dir', newer])
    expect(result.exitCode).toBe(9)
    expect(result.stderr).toContain('newer than this otpd')
  })
})
