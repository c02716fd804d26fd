import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary, startServer, type RunningServer } from '../helpers/binary.ts'

type Check = { name: string; status: string; message: string; remedy: string | null }

const password = 'correct horse battery'
const token = 'abcdefabcdefabcdefabcdefabcdef12'

const read = (stdout: string): { checks: Check[]; ok: boolean } => JSON.parse(stdout).data
const find = (checks: Check[], name: string) => checks.find((check) => check.name === name)

describe('with a running server', () => {
  let server: RunningServer

  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.stop())

  const doctor = (args: string[] = [], env: Record<string, string> = {}) =>
    server.otpd(['doctor', ...args], { env: { OTPD_DATA_DIR: server.dataDir, ...env } })

  test('warns in aligned lines that codes stay in the inbox and that there is no login, and exits 0', async () => {
    const result = await doctor()
    expect(result).toMatchObject({ exitCode: 0, stderr: '' })
    const lines = result.stdout.split('\n')
    expect(lines).toContainEqual(
      expect.stringMatching(/^✓ master key {6}from .*master\.key, matches the database$/),
    )
    expect(lines).toContainEqual(expect.stringMatching(/^✓ server {10}http:\S+ is ready \(OTPD_SERVER\)$/))
    expect(lines).toContainEqual(
      expect.stringMatching(/^▲ live sending {4}no provider is configured: .* stay in the inbox$/),
    )
    expect(lines[0]).toStartWith('▲ backups         none, and no schedule')
    expect(lines).toContainEqual(`▲ login           not logged in to ${server.url}`)
    expect(lines).toContainEqual(`                  → otpd login --server ${server.url}`)
    expect(result.stdout).toEndWith('\n\n3 warnings.\n')
    expect(result.stdout).not.toContain('\u001b')
  })

  test('shows the login and its source, and never the token or a secret', async () => {
    const login = [
      'login',
      '--setup-token',
      server.setupToken(),
      '--email',
      'ada@example.com',
      '--password-stdin',
    ]
    await server.otpd(login, { input: password })
    writeFileSync(join(server.home, 'otpd.toml'), sending)
    writeFileSync(join(server.home, 'twilio'), token, { mode: 0o600 })
    // Without the data directory of the server: otherwise its own settings count.
    const elsewhere = { OTPD_DATA_DIR: join(server.home, 'elsewhere') }
    const result = await doctor(['--json', '--config', join(server.home, 'otpd.toml')], elsewhere)
    const { checks, ok } = read(result.stdout)
    expect({ ok, exitCode: result.exitCode }).toEqual({ ok: true, exitCode: 0 })
    expect(find(checks, 'login')).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(
        /^ada@example\.com, token from ~\/\.config\/otpd\/credentials\.json until 20/,
      ),
      remedy: null,
    })
    expect(find(checks, 'provider main')).toMatchObject({ status: 'ok', message: 'Twilio: sms' })
    expect(find(checks, 'receipts')).toMatchObject({
      status: 'warning',
      remedy: expect.stringContaining('publicUrl = '),
    })
    const credentials: unknown = JSON.parse(
      readFileSync(join(server.home, '.config/otpd/credentials.json'), 'utf8'),
    )
    for (const secret of [token, ...secretsIn(credentials)]) expect(result.stdout).not.toContain(secret)
  })

  test('finds a running server by its lock when the address is wrong', async () => {
    const result = await doctor(['--json', '--server', 'http://127.0.0.1:1'])
    expect(result.exitCode).toBe(8)
    expect(find(read(result.stdout).checks, 'server')).toMatchObject({
      status: 'fault',
      remedy: expect.stringContaining('give its address'),
    })
  })

  test('reports every problem of the configuration with its line', async () => {
    writeFileSync(join(server.home, 'bad.toml'), '[server]\nlitsen = "127.0.0.1:1"\n')
    const result = await doctor(['--config', join(server.home, 'bad.toml')])
    expect(result.exitCode).toBe(8)
    expect(result.stdout).toContain(
      `✗ configuration   ${join(server.home, 'bad.toml')}:2: There is no setting`,
    )
    expect(result.stdout).toContain('✓ server ')
  })

  test('does not use credentials that others can read', async () => {
    const path = join(server.home, '.config/otpd/credentials.json')
    chmodSync(path, 0o644)
    for (const env of [{ OTPD_SERVER: '' }, { OTPD_SERVER: server.url }]) {
      const result = await doctor(['--json'], env)
      expect(result.exitCode).toBe(8)
      expect(find(read(result.stdout).checks, 'login')).toMatchObject({
        status: 'fault',
        remedy: expect.stringContaining(`chmod go= ${path}`),
      })
    }
    chmodSync(path, 0o600)
  })

  test('checks the rest if the credentials are damaged', async () => {
    const path = join(server.home, '.config/otpd/credentials.json')
    const content = readFileSync(path)
    writeFileSync(path, '{"servers":')
    const { checks } = read((await doctor(['--json'])).stdout)
    writeFileSync(path, content)
    expect(find(checks, 'login')).toMatchObject({
      status: 'fault',
      message: `${path} is not an otpd credentials file`,
    })
    expect(find(checks, 'master key')).toMatchObject({ status: 'ok' })
  })
})

describe('without a server', () => {
  let home: string

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'otpd-doctor-'))
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test('says how to start one, and creates nothing', async () => {
    const dataDir = join(home, 'none')
    const result = await runBinary(home, ['doctor', '--data-dir', dataDir, '--server', 'http://127.0.0.1:1'])
    expect(result).toMatchObject({ exitCode: 8, stderr: '' })
    expect(result.stdout).toContain('✗ server          Cannot reach http://127.0.0.1:1 (connection refused)')
    expect(result.stdout).toContain('→ Start one: otpd serve')
    expect(existsSync(dataDir)).toBe(false)
    expect(existsSync(join(home, '.config'))).toBe(false)
  })

  test('checks what a server left: files, key and database', async () => {
    const dataDir = join(home, 'left')
    const server = await startServer({ home, dataDir })
    await server.stop('SIGKILL')
    const copy = join(home, 'copy')
    cpSync(dataDir, copy, { recursive: true })
    chmodSync(copy, 0o700)
    writeFileSync(join(copy, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
    chmodSync(join(copy, 'otpd.db'), 0o644)
    const checksAt = async (directory: string) =>
      read((await runBinary(home, ['doctor', '--json', '--data-dir', directory])).stdout).checks
    const sound = await checksAt(dataDir)
    for (const name of ['data directory', 'master key', 'schema', 'database']) {
      expect(find(sound, name)).toMatchObject({ status: 'ok' })
    }
    expect(find(sound, 'data directory')?.message).toContain('not in use')
    const broken = await checksAt(copy)
    expect(find(broken, 'master key')).toMatchObject({
      status: 'fault',
      message: 'the database was created with another master key',
    })
    expect(find(broken, 'data directory')).toMatchObject({
      status: 'fault',
      remedy: `Restrict it: chmod go= ${join(copy, 'otpd.db')}`,
    })
    expect(statSync(join(copy, 'otpd.db')).mode & 0o777).toBe(0o644)
  })

  test('says on a client machine that the server is elsewhere, and skips its checks', async () => {
    const env = { STATE_DIRECTORY: '', XDG_DATA_HOME: join(home, 'nowhere') }
    const args = ['doctor', '--json', '--server', 'http://otpd.invalid', '--timeout', '5s']
    // Root's default data directory is elsewhere, and may exist on this machine.
    if (process.getuid?.() === 0 && existsSync('/var/lib/otpd')) return
    const { checks } = read((await runBinary(home, args, { env })).stdout)
    expect(checks.map(({ name }) => name)).toEqual(['host', 'server', 'program', 'terminal'])
    expect(find(checks, 'host')).toMatchObject({ status: 'ok' })
  })
})

const sending = `
[[providers]]
name = "main"
kind = "twilio"
accountSid = "AC00000000000000000000000000000000"
authTokenFile = "twilio"
from = "+15005550006"
`

/** Extracts the tokens of a credentials file. */
const secretsIn = (value: unknown): string[] =>
  [...JSON.stringify(value).matchAll(/"(?:idToken|refreshToken)":"([^"]+)"/g)].map(([, found]) => found ?? '')
