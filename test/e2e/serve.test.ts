import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runBinary, startServer } from '../helpers/binary.ts'
import { runInTerminal } from '../helpers/terminal.ts'

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
    // At this level each request writes a line.
    const server = await startServer({ home, env: { OTPD_LOG_LEVEL: 'debug' } })
    await server.stopReadingStderr()
    await server.waitUntilReady()
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

  test.each(['serve --dev', 'demo'])('%s names the place where it cannot keep its data', async (command) => {
    const nowhere = join(home, 'nowhere')
    const result = await runBinary(home, command.split(' '), { env: { TMPDIR: nowhere } })
    expect(result).toMatchObject({ exitCode: 9, stdout: '' })
    expect(result.stderr).toContain(
      `No temporary folder can be made in ${nowhere} (no such file or folder, ENOENT).`,
    )
    expect(result.stderr).toContain('TMPDIR=DIR')
  })

  test('otpd demo does not wait for a picture that a narrow terminal cannot show', async () => {
    const run = runInTerminal(home, ['demo'], { columns: 40 })
    expect(await run.waitForExit()).toBe(0)
    expect(run.text()).not.toContain('too small')
    expect(run.text()).toContain('The server is stopped')
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
