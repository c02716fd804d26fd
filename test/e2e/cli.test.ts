import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runBinary, startServer, type RunningServer } from '../helpers/binary.ts'

const email = 'ada@example.com'
const password = 'correct horse battery'

const parseData = (result: { stdout: string; stderr: string }) => {
  if (result.stdout === '') throw new Error(result.stderr)
  return JSON.parse(result.stdout).data
}

describe('the first five minutes', () => {
  let server: RunningServer
  /** Read at once: its file is removed when it is used. */
  let setupToken: string

  beforeAll(async () => {
    server = await startServer()
    setupToken = server.setupToken()
  })

  afterAll(() => server.stop())

  test('lead from nothing to a verified code in six commands', async () => {
    const { otpd } = server
    const login = [
      'login',
      '--setup-token',
      setupToken,
      '--email',
      email,
      '--name',
      'Ada',
      '--password-stdin',
    ]
    expect(await otpd(login, { input: password })).toMatchObject({ exitCode: 0, stdout: '' })

    const project = await otpd(['project', 'create', 'storefront'])
    expect(project).toMatchObject({ exitCode: 0 })
    expect(project.stdout).toContain('prj_')

    const app = await otpd([
      'app',
      'create',
      'web',
      '--project',
      'storefront',
      '--env',
      'live',
      '--env-file',
      '.env.otpd',
    ])
    expect(app).toMatchObject({ exitCode: 0 })
    expect(statSync(join(server.home, '.env.otpd')).mode & 0o777).toBe(0o600)

    const sent = await otpd(['otp', 'send', '+14155552671', '--env-file', '.env.otpd'])
    expect(sent).toMatchObject({ exitCode: 0 })
    const requestId = /otp_[0-9a-z]{26}/.exec(sent.stdout)?.[0] ?? ''
    expect(sent.stderr).toContain(`otpd otp verify ${requestId}`)

    const inbox = await otpd(['inbox'])
    const code = /\b\d{6}\b(?=.*otp_)/.exec(inbox.stdout)?.[0] ?? ''
    expect(inbox.stdout).toContain(requestId)

    const verified = await otpd(['otp', 'verify', requestId, code, '--env-file', '.env.otpd'])
    expect(verified).toMatchObject({ exitCode: 0 })
    expect(verified.stdout).toContain('+14155552671')
  })

  test('use up the setup token: it creates no second account', async () => {
    const login = ['login', '--setup-token', setupToken, '--email', 'eve@example.com', '--password-stdin']
    const result = await server.otpd(login, { input: password })
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
  })

  test('store a login that whoami shows and logout ends', async () => {
    const { otpd } = server
    const whoamiResult = await otpd(['whoami'])
    expect(whoamiResult.stdout).toContain(email)
    const credentials = join(server.home, '.config/otpd/credentials.json')
    expect(statSync(credentials).mode & 0o777).toBe(0o600)
    const { refreshToken } = JSON.parse(readFileSync(credentials, 'utf8')).logins[server.url]
    expect((await otpd(['logout'])).exitCode).toBe(0)
    expect((await otpd(['whoami'])).exitCode).toBe(4)
    const retryResponse = await fetch(`${server.url}/v1/auth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken }),
    })
    expect(retryResponse.status).toBe(400)
  })
})

describe('automation', () => {
  let server: RunningServer
  let otpd: RunningServer['otpd']

  beforeAll(async () => {
    server = await startServer()
    otpd = server.otpd
    const create = ['admin', 'create', '--email', email, '--name', 'Ada', '--password-stdin']
    const createResult = await otpd([...create, '--data-dir', server.dataDir, '--json'], { input: password })
    expect(parseData(createResult)).toMatchObject({ id: expect.stringMatching(/^dev_[0-9a-z]{26}$/), email })
    const login = ['login', '--server', server.url, '--email', email, '--password-stdin']
    expect(await otpd(login, { input: `${password}\n` })).toMatchObject({ exitCode: 0 })
  })

  afterAll(() => server.stop())

  test('gets tokens from the token endpoint with a password', async () => {
    const response = await fetch(`${server.url}/v1/auth/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'password', username: email, password }),
    })
    expect(await response.json()).toEqual({
      id_token: expect.any(String),
      refresh_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token_expires_in: expect.any(Number),
    })
  })

  test('gets only an ID token on one line, and the API accepts it', async () => {
    const { stdout } = await otpd(['auth', 'token'])
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const headers = { authorization: `Bearer ${stdout.trim()}` }
    expect((await fetch(`${server.url}/v1/developer/me`, { headers })).status).toBe(200)
  })

  test('reads exactly the body of the API', async () => {
    const { stdout } = await otpd(['whoami', '--json'])
    const token = (await otpd(['auth', 'token'])).stdout.trim()
    const headers = { authorization: `Bearer ${token}` }
    expect(stdout).toBe(`${await (await fetch(`${server.url}/v1/developer/me`, { headers })).text()}\n`)
  })

  test('creates, sends and verifies with names, ids and an env file', async () => {
    const project = parseData(
      await otpd(['project', 'create', 'shop', '--description', 'The shop', '--json']),
    )
    const byId = ['app', 'create', 'by-id', '--project', project.id, '--env', 'live', '--json']
    expect(parseData(await otpd(byId))).toMatchObject({ environment: 'live', status: 'active' })
    const app = [
      'app',
      'create',
      'web',
      '--project',
      'shop',
      '--env',
      'test',
      '--env-file',
      'web.env',
      '--json',
    ]
    expect(parseData(await otpd(app))).toMatchObject({ environment: 'test' })

    const secondCreateResult = await otpd(app)
    expect(secondCreateResult).toMatchObject({ exitCode: 2, stdout: '' })
    expect(parseData(await otpd(['app', 'list', '--json']))).toHaveLength(2)

    const sent = parseData(await otpd(['otp', 'send', '+14155550100', '--env-file', 'web.env', '--json']))
    const wrong = await otpd(['otp', 'verify', sent.requestId, '000000', '--env-file', 'web.env', '--json'])
    expect(wrong).toMatchObject({ exitCode: 6, stdout: '' })
    expect(JSON.parse(wrong.stderr).error.metadata.attemptsRemaining).toBe(4)
    const verify = ['otp', 'verify', sent.requestId, '424242', '--env-file', 'web.env', '--json']
    expect(parseData(await otpd(verify))).toMatchObject({ status: 'verified', phone: '+14155550100' })
  })

  test('renews a session once for several concurrent processes', async () => {
    const path = join(server.home, '.config/otpd/credentials.json')
    const before = JSON.parse(readFileSync(path, 'utf8'))
    before.logins[server.url].idTokenExpiresAt = '2020-01-01T00:00:00.000Z'
    writeFileSync(path, JSON.stringify(before))
    const result = await Promise.all([1, 2, 3, 4].map(() => otpd(['auth', 'token'])))
    expect(result.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
    expect(new Set(result.map(({ stdout }) => stdout)).size).toBe(1)
    expect(result[0]?.stdout.trim()).not.toBe(before.logins[server.url].idToken)
  })

  test('creates accounts and sets plans on the data directory', async () => {
    const host = (...args: string[]) =>
      otpd(['admin', ...args, '--data-dir', server.dataDir, '--json'], { input: password })
    const bob = parseData(await host('create', '--email', 'bob@example.com', '--password-stdin'))
    const emails = parseData(await host('list')).map((one: { email: string }) => one.email)
    expect(emails.toSorted()).toEqual([email, 'bob@example.com'])
    expect((await host('create', '--email', 'bob@example.com', '--password-stdin')).exitCode).toBe(6)
    expect((await host('set-plan', bob.email, 'free')).exitCode).toBe(0)
    expect((await host('set-plan', bob.email, 'no such plan')).exitCode).toBe(2)
    expect((await host('reset-password', bob.email, '--password-stdin')).exitCode).toBe(0)
    expect((await host('reset-password', 'nobody@example.com', '--password-stdin')).exitCode).toBe(5)
    expect(parseData(await host('setup-token')).token).toEqual(expect.any(String))
  })
})

/** Sends the first half of a request, which keeps the server busy until the second half arrives. */
async function beginRequest(url: string) {
  const { hostname, port } = new URL(url)
  const response = Promise.withResolvers<string>()
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => response.resolve(bytes.toString()),
      error: (_, error) => response.reject(error),
    },
  })
  const head = ['POST /v1/auth/token HTTP/1.1', `Host: ${hostname}`, 'Content-Length: 16']
  socket.write([...head, 'Content-Type: application/x-www-form-urlencoded', '', 'grant_ty'].join('\r\n'))
  socket.flush()
  // A later request has been answered, so the server has seen the first one.
  await fetch(`${url}/v1/health`)
  return { answer: response.promise, finish: () => socket.write('pe=other') }
}

describe('serve', () => {
  let home: string

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'otpd-serve-'))
  })

  afterEach(() => rmSync(home, { recursive: true }))

  test.each(['SIGTERM', 'SIGINT'] as const)('exits with 0 after %s', async (signal) => {
    const server = await startServer({ home })
    expect(await server.stop(signal)).toBe(0)
  })

  test('finishes a request in flight before it exits', async () => {
    const server = await startServer({ home })
    const request = await beginRequest(server.url)
    process.kill(server.pid, 'SIGTERM')
    await server.waitForLog('shutting down')
    request.finish()
    expect(await request.answer).toStartWith('HTTP/1.1 400')
    expect(await server.exited).toBe(0)
  })

  test('exits at once after a second signal', async () => {
    const server = await startServer({ home })
    await beginRequest(server.url)
    process.kill(server.pid, 'SIGINT')
    await server.waitForLog('shutting down')
    expect(await server.stop('SIGINT')).toBe(130)
  })

  test('keeps running when its log is no longer read', async () => {
    const server = await startServer({ home })
    await server.stopReadingStderr()
    expect((await fetch(`${server.url}/v1/health/ready`)).status).toBe(200)
    expect(await server.stop()).toBe(0)
  })

  test('on a wildcard address prints a URL that can be reached', async () => {
    const server = await startServer({ home, env: { OTPD_LISTEN: '0.0.0.0:0' } })
    expect(server.url).toStartWith('http://127.0.0.1:')
    expect((await fetch(`${server.url}/v1/health`)).status).toBe(200)
    await server.stop()
  })

  test('creates a private data directory', async () => {
    const server = await startServer({ home })
    expect(statSync(server.dataDir).mode & 0o777).toBe(0o700)
    expect(statSync(join(server.dataDir, 'master.key')).mode & 0o777).toBe(0o600)
    expect(statSync(join(server.dataDir, 'setup-token')).mode & 0o777).toBe(0o600)
    await server.stop()
  })

  test('refuses a second server on the same data directory', async () => {
    const server = await startServer({ home })
    const env = { OTPD_DATA_DIR: server.dataDir, OTPD_LISTEN: '127.0.0.1:0' }
    const second = await runBinary(home, ['serve'], { env })
    expect(second).toMatchObject({ exitCode: 9 })
    expect(second.stderr).toContain(server.dataDir)
    await server.stop()
  })

  test('refuses a port that is in use', async () => {
    const server = await startServer({ home })
    const env = { OTPD_DATA_DIR: join(home, 'other'), OTPD_LISTEN: new URL(server.url).host }
    const second = await runBinary(home, ['serve'], { env })
    expect(second).toMatchObject({ exitCode: 9 })
    expect(second.stderr).toContain('--listen')
    await server.stop()
  })

  test('rejects an invalid configuration and names every problem', async () => {
    const env = { OTPD_LISTEN: 'nowhere', OTPD_LOG_LEVEL: 'loud' }
    const result = await runBinary(home, ['serve'], { env })
    expect(result).toMatchObject({ exitCode: 9, stdout: '' })
    expect(result.stderr).toContain('OTPD_LISTEN')
    expect(result.stderr).toContain('OTPD_LOG_LEVEL')
  })

  test('loads no files from the working directory', async () => {
    const hostile = join(home, 'hostile')
    mkdirSync(hostile)
    writeFileSync(join(hostile, '.env'), 'OTPD_LISTEN=nowhere\nOTPD_SERVER=http://evil.example\n')
    writeFileSync(join(hostile, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
    writeFileSync(join(hostile, 'evil.ts'), "await Bun.write('evil-ran', 'yes')\n")
    const check = await runBinary(home, ['config', 'check'], { cwd: hostile })
    expect(check).toMatchObject({ exitCode: 0 })
    const whoami = await runBinary(home, ['whoami'], { cwd: hostile })
    expect(whoami.stderr).not.toContain('evil.example')
    expect(existsSync(join(hostile, 'evil-ran'))).toBe(false)
  })
})

test('config show prints the source of every value, and the invalid ones', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-config-'))
  const env = { OTPD_LISTEN: '127.0.0.1:9090', OTPD_LOG_LEVEL: 'loud' }
  const result = await runBinary(home, ['config', 'show', '--log-format', 'json'], { env })
  expect(result.exitCode).toBe(8)
  expect(result.stdout).toMatch(/^server\.listen +127\.0\.0\.1:9090 +OTPD_LISTEN$/m)
  expect(result.stdout).toMatch(/^log\.format +json +--log-format$/m)
  expect(result.stderr).toContain('OTPD_LOG_LEVEL')
  rmSync(home, { recursive: true })
})

test('a closed stdout is not a failure', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-pipe-'))
  const child = Bun.spawn([binaryPath, 'config', 'show', '--json'], {
    env: { HOME: home },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  await child.stdout.cancel()
  expect(await child.stderr.text()).toBe('')
  expect(await child.exited).toBe(0)
  rmSync(home, { recursive: true })
})
