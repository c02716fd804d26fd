import { Database } from 'bun:sqlite'
import { afterEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary, startServer, type RunningServer } from '../helpers/binary.ts'

const homes: string[] = []
const makeHome = () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-server-'))
  homes.push(home)
  return home
}
afterEach(() => {
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true })
})

/** Creates a data directory that a stopped server has used. */
async function createUsedDirectory(home: string): Promise<string> {
  const server = await startServer({ home })
  await server.stop()
  return server.dataDir
}

/** Starts a server on a directory that it must refuse. Returns its output. */
async function expectRefusal(home: string, dataDir: string) {
  const result = await runBinary(home, ['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'])
  expect(result.exitCode).toBe(9)
  return result.stderr
}

const sha256 = (path: string) => Bun.CryptoHasher.hash('sha256', readFileSync(path), 'hex')

async function createTestApplication(server: RunningServer, home: string) {
  const password = 'correct horse battery'
  const setup = [
    'login',
    '--setup-token',
    server.setupToken(),
    '--email',
    'ada@example.com',
    '--password-stdin',
  ]
  await server.otpd(setup, { input: password })
  await server.otpd(['project', 'create', 'shop'])
  const file = join(home, 'app.env')
  await server.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', file])
  const values = new Map(
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  return {
    'content-type': 'application/json',
    'x-client-id': values.get('OTPD_CLIENT_ID') ?? '',
    'x-client-secret': values.get('OTPD_CLIENT_SECRET') ?? '',
    'x-api-key': values.get('OTPD_API_KEY') ?? '',
  }
}

describe('a start is refused and changes nothing', () => {
  test('with another master key', async () => {
    const home = makeHome()
    const dataDir = await createUsedDirectory(home)
    writeFileSync(join(dataDir, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 })
    expect(await expectRefusal(home, dataDir)).toContain('belongs to another master key')
  })

  test('without the master key of a database', async () => {
    const home = makeHome()
    const dataDir = await createUsedDirectory(home)
    rmSync(join(dataDir, 'master.key'))
    expect(await expectRefusal(home, dataDir)).toContain('is missing')
    expect(existsSync(join(dataDir, 'master.key'))).toBe(false)
  })

  test('while other users can read the key or the database', async () => {
    const home = makeHome()
    const dataDir = await createUsedDirectory(home)
    for (const name of ['master.key', 'otpd.db']) {
      chmodSync(join(dataDir, name), 0o644)
      expect(await expectRefusal(home, dataDir)).toContain(`chmod go=`)
      chmodSync(join(dataDir, name), 0o600)
    }
  })

  test('on a database that is newer, or of another build', async () => {
    const home = makeHome()
    const dataDir = await createUsedDirectory(home)
    const change = (sql: string) => {
      const database = new Database(join(dataDir, 'otpd.db'))
      database.run(sql)
      database.close()
    }
    change("insert into migrations (name, checksum, applied_at) values ('9999_future', 'x', 0)")
    expect(await expectRefusal(home, dataDir)).toContain('newer than this otpd')
    change("delete from migrations where name = '9999_future'")
    change("update migrations set checksum = 'x'")
    expect(await expectRefusal(home, dataDir)).toContain('different build')
  })

  test('on a damaged or foreign file', async () => {
    const home = makeHome()
    const dataDir = await createUsedDirectory(home)
    const path = join(dataDir, 'otpd.db')
    const fileBytes = readFileSync(path)
    truncateSync(path, Math.floor(fileBytes.length / 2))
    const cut = sha256(path)
    expect(await expectRefusal(home, dataDir)).toContain('damaged')
    expect(sha256(path)).toBe(cut)
    writeFileSync(path, 'these are not the pages that you are looking for, '.repeat(200))
    expect(await expectRefusal(home, dataDir)).toContain('not a database of otpd')
    rmSync(path)
    const foreign = new Database(path)
    foreign.run('create table songs (title text)')
    foreign.close()
    chmodSync(path, 0o600)
    const untouched = sha256(path)
    expect(await expectRefusal(home, dataDir)).toContain('not created by otpd')
    expect(sha256(path)).toBe(untouched)
  })
})

describe('acknowledged data', () => {
  test('survives kill -9', async () => {
    const home = makeHome()
    let server = await startServer({ home, env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' } })
    const { dataDir } = server
    const headers = await createTestApplication(server, home)
    const acknowledged = new Map<string, string>()
    const verified = new Set<string>()

    for (let round = 0; round < 5; round++) {
      const { url } = server
      const killing = new AbortController()
      const post = async (path: string, body: object) => {
        const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
        const apiResponse: { data: { requestId: string; code: string } } = JSON.parse(await response.text())
        return { ok: response.ok, data: apiResponse.data }
      }
      const work = async (worker: number) => {
        for (let i = 0; !killing.signal.aborted; i++) {
          const phone = `+1415${3_000_000 + worker * 100_000 + round * 10_000 + i}`
          const sent = await post('/v1/otp/send', { phone })
          if (sent.ok) acknowledged.set(sent.data.requestId, sent.data.code)
          if (!sent.ok || i % 2 === 0) continue
          const { requestId, code } = sent.data
          if ((await post('/v1/otp/verify', { requestId, code })).ok) verified.add(requestId)
        }
      }
      const before = acknowledged.size
      const workers = Array.from({ length: 8 }, (_, worker) => work(worker).catch(() => undefined))
      while (acknowledged.size < before + 100) await new Promise((resolve) => setImmediate(resolve))
      const killed = server.stop('SIGKILL')
      killing.abort()
      await killed
      await Promise.all(workers)
      server = await startServer({
        home,
        dataDir,
        env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' },
      })
    }

    const database = new Database(join(dataDir, 'otpd.db'), { readonly: true })
    const rows = database
      .query<{ id: string; status: string }, []>('select id, status from otp_requests')
      .all()
    const statuses = new Map(rows.map(({ id, status }) => [id, status]))
    expect([...acknowledged.keys()].filter((id) => !statuses.has(id))).toEqual([])
    expect([...verified].filter((id) => statuses.get(id) !== 'verified')).toEqual([])
    expect(verified.size).toBeGreaterThan(0)
    expect(database.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
    // Each request has one event of each kind, however often the process was killed.
    const repeatedRows = database
      .query(
        `select request_id from events where type in ('otp.sent', 'otp.verified') group by request_id, type having count(*) > 1`,
      )
      .all()
    expect(repeatedRows).toEqual([])
    database.close()
    await server.waitForLog('intact after the unclean stop')
    await server.stop()
  }, 300_000)
})

test('secrets are in files that only their owner can read', async () => {
  const home = makeHome()
  const server = await startServer({ home })
  for (const name of ['otpd.db', 'otpd.lock', 'master.key', 'setup-token']) {
    expect(statSync(join(server.dataDir, name)).mode & 0o777).toBe(0o600)
  }
  expect(statSync(server.dataDir).mode & 0o777).toBe(0o700)
  await server.stop()
})

test('the first account can come from the environment, for containers', async () => {
  const home = makeHome()
  const password = join(home, 'password')
  writeFileSync(password, 'correct horse battery\n', { mode: 0o600 })
  const server = await startServer({
    home,
    env: { OTPD_ADMIN_EMAIL: 'ada@example.com', OTPD_ADMIN_PASSWORD_FILE: password },
  })
  const login = await server.otpd(['login', '--email', 'ada@example.com', '--password-stdin'], {
    input: 'correct horse battery',
  })
  expect(login.exitCode).toBe(0)
  expect(existsSync(join(server.dataDir, 'setup-token'))).toBe(false)
  await server.stop()
})

test('the docs page and its script are served from the binary', async () => {
  const home = makeHome()
  const server = await startServer({ home })
  const page = await fetch(`${server.url}/v1/docs`).then((response) => response.text())
  const sources = [...page.matchAll(/(?:src|href)="\.\.\/(docs\/[^"]+)"/g)].map((match) => match[1])
  expect(sources.length).toBeGreaterThanOrEqual(2)
  for (const source of sources) {
    const asset = await fetch(`${server.url}/${source}`)
    expect(asset.status).toBe(200)
    expect((await asset.text()).length).toBeGreaterThan(50)
  }
  await server.stop()
})
