import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { runBinary, startServer, type RunningServer } from '../helpers/binary.ts'

// The compiled binary replaces its master key, also while it serves calls.

const password = 'correct horse battery'
let home: string
let dataDir: string
let server: RunningServer | undefined

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'otpd-rotate-'))
  dataDir = join(home, 'data')
})
afterEach(async () => {
  await server?.stop()
  server = undefined
  rmSync(home, { recursive: true, force: true })
})

const start = async (env: Record<string, string> = {}) =>
  (server = await startServer({ home, dataDir, env: { OTPD_SEND_PER_MINUTE: '0', ...env } }))

const otpd = (args: string[], env: Record<string, string> = {}, input = '') =>
  runBinary(home, args, {
    input,
    env: { OTPD_DATA_DIR: dataDir, ...(server && { OTPD_SERVER: server.url }), ...env },
  })

async function json(args: string[], env: Record<string, string> = {}, input = '') {
  const result = await otpd([...args, '--json'], env, input)
  if (result.exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${result.exitCode} ${result.stderr}`)
  return JSON.parse(result.stdout).data
}

/** Creates a developer with an application for tests, whose answers show the codes. */
async function createApplication(env: Record<string, string> = {}) {
  await json(['admin', 'create', '--email', 'ada@example.com', '--password-stdin'], env, password)
  await otpd(['login', '--email', 'ada@example.com', '--password-stdin'], env, password)
  await json(['project', 'create', 'shop'])
  const envFile = join(home, '.env.otpd')
  await json(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', envFile])
  const text = readFileSync(envFile, 'utf8')
  const credential = (name: string) => new RegExp(`${name}=(\\S+)`).exec(text)?.[1] ?? ''
  return {
    'x-client-id': credential('OTPD_CLIENT_ID'),
    'x-client-secret': credential('OTPD_CLIENT_SECRET'),
    'x-api-key': credential('OTPD_API_KEY'),
    'content-type': 'application/json',
  }
}

type Sent = { requestId: string; code: string }

function client(headers: Record<string, string>) {
  let line = 2_000_000
  const call = async (path: string, body: object) => {
    const response = await fetch(`${server?.url}/v1/otp/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  return {
    call,
    async send(): Promise<Sent> {
      const { status, body } = await call('send', { phone: `+1415${(line += 1)}` })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body.data
    },
    verify: async ({ requestId, code }: Sent) => {
      const { status, body } = await call('verify', { requestId, code })
      return status === 200 ? 'verified' : body.error.code
    },
  }
}

function queryDatabase<T>(sql: string): T[] {
  const connection = new SqliteConnection(join(dataDir, 'otpd.db'), { readonly: true })
  try {
    return connection.query<T, []>(sql).all()
  } finally {
    connection.close()
  }
}

const versionsOf = (purpose: string) =>
  queryDatabase<{ version: number }>(`select version from data_keys where purpose = '${purpose}'`).map(
    ({ version }) => version,
  )

/** Reads the error after the steps that went before it. */
const errorCode = (stderr: string): unknown => JSON.parse(stderr.trim().split('\n').at(-1) ?? '').error.code

describe('a running server', () => {
  test('continues with a new master key, and so does its next start', async () => {
    await start()
    const { send, verify } = client(await createApplication())
    const sent = await send()
    const { file } = await json(['backup'])
    const unconfirmed = await otpd(['admin', 'rotate-master-key'])
    expect([unconfirmed.exitCode, unconfirmed.stderr]).toEqual([2, expect.stringContaining('--yes')])
    const rotation = await json(['admin', 'rotate-master-key', '--yes'])
    const keptKey = { path: expect.stringContaining('master.key.before-'), neededBy: [basename(file)] }
    expect(rotation).toMatchObject({ state: 'replaced', areDataKeysNew: false, keptKey })
    const oldKeyChecks = async () =>
      JSON.parse((await otpd(['doctor', '--json'])).stdout).data.checks.filter(
        ({ name }: { name: string }) => name === 'old master key',
      )
    expect(await oldKeyChecks()).toMatchObject([
      { status: 'ok', message: expect.stringContaining(basename(file)) },
    ])
    expect(await verify(sent)).toBe('verified')
    expect((await otpd(['whoami'])).exitCode).toBe(0)
    const later = await send()
    expect(await server?.stop()).toBe(0)
    await start()
    expect(await verify(later)).toBe('verified')
    expect(await server?.stop()).toBe(0)
    server = undefined
    // The old key is found by itself.
    expect(await json(['restore', file, '--yes'])).toMatchObject({ file })
    for (const name of [file, `${file}.hmac`]) rmSync(name)
    for (const name of readdirSync(join(dataDir, 'backups'))) rmSync(join(dataDir, 'backups', name))
    expect(await oldKeyChecks()).toMatchObject([
      { status: 'warning', remedy: expect.stringContaining('rm ') },
    ])
  })

  test('writes with no replaced key from the commit on: codes of before end, new ones verify', async () => {
    await start({ OTPD_PUBLIC_URL: 'https://otp.example.com' })
    const headers = await createApplication()
    const { call, send, verify } = client(headers)
    const before = [await send(), await send(), await send()]
    expect(await json(['admin', 'rotate-master-key', '--yes'])).toMatchObject({
      canceledCodes: 0,
      callbackUrls: {},
    })

    const statuses: number[] = []
    const stopping = new AbortController()
    const traffic = Array.from({ length: 4 }, async () => {
      while (!stopping.signal.aborted) {
        const phone = `+1415${3_000_000 + statuses.length}`
        statuses.push((await call('send', { phone })).status)
      }
    })
    await Bun.sleep(300)
    const rotation = await json(['admin', 'rotate-master-key', '--compromised', '--yes'])
    const after = await send()
    stopping.abort()
    await Promise.all(traffic)

    expect(rotation).toMatchObject({ state: 'replaced', areDataKeysNew: true })
    expect(rotation.canceledCodes).toBeGreaterThanOrEqual(before.length)
    expect(new Set(statuses)).toEqual(new Set([201]))
    expect(await verify(after)).toBe('verified')
    for (const sent of before) expect(await verify(sent)).toBe('OTP_CANCELED')
    expect(versionsOf('codes')).toEqual([2])
    // Every code that still is pending was made with the new keys.
    const pending = queryDatabase<{ count: number }>(
      `select count(*) as count from otp_requests where status = 'pending'`,
    )
    expect(pending[0]?.count).toBeLessThan(statuses.length + 4)
    // The server's backfill may cancel some, or all, before the command does: the number counts them too.
    const canceled = queryDatabase(`select 1 from events where type = 'otp.canceled'`)
    expect(canceled.length).toBe(rotation.canceledCodes)
    expect(queryDatabase('select 1 from signing_keys')).toEqual([])
    // The session goes on: its next ID token is signed with a new key.
    expect((await otpd(['whoami'])).exitCode).toBe(0)
    expect(server?.log()).not.toContain('"level":"error"')
  }, 60_000)

  test('that cannot read the new master key stops before it writes anything', async () => {
    const [old, fresh] = ['old.key', 'new.key'].map((name, index) => {
      writeFileSync(join(home, name), `${String(index + 1).repeat(63)}a\n`, { mode: 0o600 })
      return join(home, name)
    })
    await start({ OTPD_MASTER_KEY_FILE: old ?? '' })
    const headers = await createApplication({ OTPD_MASTER_KEY_FILE: old ?? '' })
    const { call } = client(headers)
    const withOld = { OTPD_MASTER_KEY_FILE: old ?? '' }
    const withNew = { OTPD_MASTER_KEY_FILE: fresh ?? '' }
    expect((await otpd(['admin', 'rotate-master-key', '--yes'], withOld)).stderr).toContain('--new-key-file')
    const both = await json(
      ['admin', 'rotate-master-key', '--new-key-file', 'new.key', '--compromised', '--yes'],
      withOld,
    )
    expect(both).toMatchObject({ state: 'both', areDataKeysNew: false })
    expect((await call('send', { phone: '+14152000001' })).status).toBe(201)
    const early = await otpd(['admin', 'rotate-master-key', '--finish', '--yes', '--json'], withOld)
    expect(errorCode(early.stderr)).toBe('NEW_KEY_NOT_IN_USE')
    expect(await json(['admin', 'rotate-master-key', '--finish', '--yes'], withNew)).toMatchObject({
      state: 'replaced',
      areDataKeysNew: true,
    })
    // The server refuses the call, or has looked at its keys before and stopped.
    const late = call('send', { phone: '+14152000002' }).then(({ status }) => status)
    expect([503, 'stopped']).toContain(await late.catch(() => 'stopped'))
    expect(await server?.exited).not.toBe(0)
    expect(server?.log()).toContain('has no master key for the new ones')
    await expect(start(withOld)).rejects.toThrow('another master key')
    await start(withNew)
    expect((await call('send', { phone: '+14152000003' })).status).toBe(201)
  }, 60_000)
})

test('the command needs a database of this version, and a private key file', async () => {
  const code = async (...args: string[]) =>
    errorCode((await otpd(['admin', 'rotate-master-key', '--yes', '--json', ...args])).stderr)
  expect(await code()).toBe('NO_DATABASE')
  await start()
  writeFileSync(join(home, 'open.key'), 'x', { mode: 0o644 })
  expect(await code('--new-key-file', 'open.key')).toBe('KEY_FILE_INVALID')
  expect(await code('--new-key-file', 'none.key')).toBe('KEY_FILE_INVALID')
  // An empty value names the folder of the caller, which other users may be allowed to read.
  expect(await otpd(['admin', 'rotate-master-key', '--yes', '--new-key-file', ''])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('is a folder, not a file.'),
  })
  expect(await code('--finish')).toBe('NOTHING_TO_FINISH')
})
