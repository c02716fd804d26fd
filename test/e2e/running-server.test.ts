import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, startServer, type RunningServer } from '../helpers/binary.ts'
import { findUnusedPort } from '../helpers/unused-port.ts'

// Host commands speak of the running server, not of the environment that they are called in.

describe('a server that was started with other settings than those of the shell', () => {
  let server: RunningServer
  const secret = 'twilio-token-abcdef0123456789abcdef'
  const record = () => join(server.dataDir, 'server.json')

  beforeAll(async () => {
    const OTPD_PUBLIC_URL = 'https://codes.example.com'
    server = await startServer({
      env: { OTPD_WEBHOOK_ALLOW: '10.1.2.3', OTPD_GUARD_COUNTRIES: 'DE', OTPD_PUBLIC_URL },
    })
  })
  afterAll(() => server.stop())

  const otpd = async (...args: string[]) => {
    const env = { OTPD_DATA_DIR: server.dataDir, OTPD_SERVER: '' }
    return await server.otpd(args, { env })
  }

  test('is what config show, doctor and guard status describe', async () => {
    const settings = await otpd('config', 'show')
    expect(settings.stdout).toMatch(/^webhooks\.allow +10\.1\.2\.3\/32 +OTPD_WEBHOOK_ALLOW$/m)
    expect(settings.stderr).toContain(`settings of the running server (process ${server.pid}, since `)
    expect(settings.stderr).toContain('This shell has another webhooks.allow: -\n')
    const doctor = await otpd('doctor')
    expect(doctor.stdout).toMatch(/✓ settings .*this shell has other .*webhooks\.allow/)
    expect(doctor.stdout).toMatch(/✓ webhooks +public addresses and 10\.1\.2\.3\/32/)
    // The address is not the default, and no login named it.
    expect(doctor.stdout).toContain(`✓ server          ${server.url} is ready (the server on this machine)`)
    expect((await otpd('guard', 'status')).stdout).toMatch(/COUNTRY_NOT_ALLOWED +0 +0 +only DE/)
  })

  test('accepts the tokens of admin token', async () => {
    const env = { OTPD_DATA_DIR: server.dataDir, OTPD_SERVER: '', OTPD_PUBLIC_URL: 'https://otp.example' }
    const email = 'ada@example.com'
    const input = 'a long password of no list'
    const created = await server.otpd(['admin', 'create', '--email', email, '--password-stdin'], {
      env,
      input,
    })
    expect(created).toMatchObject({ exitCode: 0 })
    const { stdout } = await server.otpd(['admin', 'token', email, '--quiet'], { env })
    const listed = await server.otpd(['project', 'list'], { env: { OTPD_TOKEN: stdout.trim() } })
    expect(listed).toMatchObject({ exitCode: 0 })
  })

  test('shows the providers of its last reload, and no secret', async () => {
    const lines = ['[[providers]]', 'name = "main"', 'kind = "twilio"', 'authTokenFile = "token"']
    const fields = { accountSid: `AC${'0'.repeat(32)}`, from: '+12025550100' }
    const config = join(server.home, '.config/otpd/server.toml')
    mkdirSync(join(server.home, '.config/otpd'), { recursive: true })
    writeFileSync(join(server.home, '.config/otpd/token'), secret, { mode: 0o600 })
    writeFileSync(
      config,
      [...lines, ...Object.entries(fields).map(([key, value]) => `${key} = "${value}"`)].join('\n'),
    )
    process.kill(server.pid, 'SIGHUP')
    await server.waitForLog('delivery reloaded')
    expect(server.log()).toContain('"applied":"providers.main.kind, ')
    const text = readFileSync(config, 'utf8')
    writeFileSync(config, `[limits]\nsendPerMinute = 7\n[guard]\ntotalPerDay = 99\n${text}`)
    const shown = await otpd('config', 'show')
    const changed = 'Changed in the file since the server started;'
    expect(shown.stderr).toContain(
      `${changed} restart to apply: limits.sendPerMinute, plans.free.sendPerMinute\n`,
    )
    expect(shown.stderr).toContain(`${changed} to apply, run kill -HUP ${server.pid}: guard.totalPerDay\n`)
    expect((await otpd('doctor')).stdout).toMatch(
      /▲ settings +changed in the file since the server started: limits\.sendPerMinute, .*\n +→ Restart to apply\n/,
    )
    process.kill(server.pid, 'SIGHUP')
    await server.waitForLog('settings changed that apply at the next start')
    expect(server.log()).toContain('"settings":"limits.sendPerMinute, plans.free.sendPerMinute"')
    expect((await otpd('config', 'show')).stderr).not.toContain('kill -HUP')
    // Another shell, which does not read that file.
    const env = { OTPD_DATA_DIR: server.dataDir, XDG_CONFIG_HOME: '/nowhere' }
    const { stdout } = await server.otpd(['provider', 'list'], { env })
    expect(stdout).toMatch(/^main +Twilio.* ready$/m)
    expect(stdout).toMatch(/^ *main +https:\/\/codes\.example\.com\/v1\/callbacks\/main\/\S+$/m)
    // It has no secret to test with: the command says which process has.
    const refused = await server.otpd(['provider', 'test', 'main', '+14155550123'], { env })
    expect(refused).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('no provider main; that of the running server'),
    })
    expect(readFileSync(record(), 'utf8')).not.toContain(secret)
    expect(statSync(record()).mode & 0o777).toBe(0o600)
  })

  test('runs with the later of two reloads, although the earlier waits for a provider to close', async () => {
    const bindTransceiver = 9
    const isBound = Promise.withResolvers<void>()
    // An SMSC that binds, and does not answer `unbind`, which the server waits for a second.
    const smsc = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket, bytes) {
          const [command, sequence] = [bytes.readUInt32BE(4), bytes.readUInt32BE(12)]
          const response = Buffer.alloc(17)
          for (const [index, value] of [17, command + 0x80000000, 0, sequence].entries())
            response.writeUInt32BE(value, 4 * index)
          if (command === bindTransceiver) socket.write(response)
          if (command === bindTransceiver) isBound.resolve()
        },
      },
    })
    const reloaded = await startServer({})
    const config = join(reloaded.home, '.config/otpd/server.toml')
    mkdirSync(join(reloaded.home, '.config/otpd'), { recursive: true })
    const password = join(reloaded.home, 'password')
    writeFileSync(password, 'secret', { mode: 0o600 })
    const reload = (text: string) => {
      writeFileSync(config, text)
      process.kill(reloaded.pid, 'SIGHUP')
    }
    const lines = ['[[providers]]', 'tls = "off"', `port = ${smsc.port}`]
    const fields = { name: 'gateway', kind: 'smpp', host: '127.0.0.1', systemId: 'otpd', from: 'Acme' }
    const pairs = Object.entries({ ...fields, passwordFile: password })
    reload([...lines, ...pairs.map(([key, value]) => `${key} = "${value}"`)].join('\n'))
    await isBound.promise
    // Until the server has read the response.
    await Bun.sleep(300)
    await reloaded.waitForLog('delivery reloaded')
    reload('[guard]\ntotalPerDay = 11\n')
    await Bun.sleep(300)
    reload('[guard]\ntotalPerDay = 22\n')
    await Bun.sleep(2_000)
    const shown = await reloaded.otpd(['config', 'show'], { env: { OTPD_DATA_DIR: reloaded.dataDir } })
    expect(shown.stdout).toMatch(/^guard\.totalPerDay +22 /m)
    await reloaded.stop()
    smsc.stop(true)
  }, 120_000)

  test('is not described any more after kill -9, nor after a stop', async () => {
    const killed = await startServer({ env: { OTPD_WEBHOOK_ALLOW: '10.9.9.9' } })
    const path = join(killed.dataDir, 'server.json')
    process.kill(killed.pid, 'SIGKILL')
    await killed.exited
    expect(existsSync(path)).toBe(true)
    const show = () => killed.otpd(['config', 'show'], { env: { OTPD_DATA_DIR: killed.dataDir } })
    expect(await show()).toMatchObject({ stdout: expect.not.stringContaining('10.9.9.9'), stderr: '' })
    const next = await startServer({ dataDir: killed.dataDir, home: killed.home })
    expect((await show()).stderr).toContain(`process ${next.pid},`)
    await next.stop()
    expect(existsSync(path)).toBe(false)
    await killed.stop()
  })
})

test('a server that gets SIGHUP while it starts goes on', async () => {
  const home = mkdtempSync(join(tmpdir(), 'otpd-hangup-'))
  // Nothing listens there, so the start waits for the database.
  const url = `postgres://otpd@127.0.0.1:${await findUnusedPort()}/otpd`
  const server = Bun.spawn([binaryPath, 'serve'], {
    env: {
      HOME: home,
      OTPD_DATABASE_URL: url,
      OTPD_PUBLIC_URL: 'https://otp.example.com',
      OTPD_MASTER_KEY: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex'),
    },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  try {
    let log = ''
    for await (const chunk of server.stderr) {
      log += Buffer.from(chunk).toString()
      if (log.includes('trying again')) break
    }
    server.kill('SIGHUP')
    await Bun.sleep(300)
    expect(server.exitCode ?? server.signalCode).toBeNull()
  } finally {
    server.kill('SIGKILL')
    await server.exited
    rmSync(home, { recursive: true })
  }
})
