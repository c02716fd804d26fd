import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunResult, type RunningServer } from '../helpers/binary.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

// The compiled binary in a pipe: stdout, stderr and the exit code.

const email = 'ada@example.com'
const password = 'correct horse battery'
const envFile = ['--env-file', 'web.env']

let server: RunningServer
let receiver: WebhookReceiver
let broken: WebhookReceiver
let projectId: string
let appId: string

const otpd = (...args: string[]) => server.otpd(args)

/** Runs a command with --json and returns its data; throws its error output if it failed. */
async function runForData(...args: string[]) {
  const result = await otpd(...args, '--json')
  if (result.exitCode !== 0) throw new Error(result.stderr)
  return JSON.parse(result.stdout).data
}

const send = (phone: string) => runForData('otp', 'send', phone, ...envFile)

beforeAll(async () => {
  receiver = await startReceiver()
  broken = await startReceiver(() => new Response('try later', { status: 503 }))
  server = await startServer({ env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1' } })
  const create = ['admin', 'create', '--email', email, '--name', 'Ada', '--password-stdin']
  await server.otpd([...create, '--data-dir', server.dataDir], { input: password })
  await server.otpd(['login', '--email', email, '--password-stdin'], { input: password })
  projectId = (await runForData('project', 'create', 'shop')).id
  appId = (await runForData('app', 'create', 'web', '--project', 'shop', '--env', 'test', ...envFile)).id
})

afterAll(async () => {
  await server.stop()
  await receiver.stop()
  await broken.stop()
})

const done = (stdout: string | RegExp): object => ({
  exitCode: 0,
  stdout: typeof stdout === 'string' ? stdout : expect.stringMatching(stdout),
})

async function expectNegative(pending: Promise<RunResult>, exitCode: number, code: string) {
  const { exitCode: actualExitCode, stdout, stderr } = await pending
  expect({ exitCode: actualExitCode, stdout, code: JSON.parse(stderr).error.code }).toEqual({
    exitCode,
    stdout: '',
    code,
  })
}

describe('project', () => {
  test('get, update and delete', async () => {
    expect(await otpd('project', 'create', 'old')).toMatchObject(done(/^✓ Project old\n/))
    expect(await otpd('project', 'update', 'old', '--name', 'new', '--description', 'Of late')).toMatchObject(
      done(/^✓ Project updated\nnew\n/),
    )
    expect(await otpd('project', 'show', 'new')).toMatchObject({ ...done(/Of late/), stderr: '' })
    const unconfirmedResult = await otpd('project', 'delete', 'new')
    expect(unconfirmedResult).toMatchObject({ exitCode: 2, stdout: '' })
    expect(unconfirmedResult.stderr).toContain('--yes')
    expect(await otpd('project', 'rm', 'new', '--yes')).toMatchObject(done('✓ Project new deleted\n'))
    await expectNegative(otpd('project', 'get', 'new', '--json'), 5, 'NOT_FOUND')
  })

  test('that holds applications is not deleted', () =>
    expectNegative(otpd('project', 'delete', projectId, '--yes', '--json'), 6, 'CONFLICT'))

  test('with an ambiguous name is rejected, and the ids to use are listed', async () => {
    const ids = [
      await runForData('project', 'create', 'twin'),
      await runForData('project', 'create', 'twin', '--allow-duplicate'),
    ]
    const result = await otpd('project', 'get', 'twin')
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    for (const { id } of ids) {
      expect(result.stderr).toContain(id)
      expect(await otpd('project', 'delete', id, '-y')).toMatchObject({ exitCode: 0 })
    }
  })
})

describe('app', () => {
  test('get, update, disable and enable', async () => {
    expect(await otpd('app', 'get', 'web')).toMatchObject(done(/Environment +test\n/))
    const flags = ['--otp-ttl', '120', '--locale', 'de', '--webotp-domain', 'example.com']
    expect(await otpd('app', 'update', 'web', ...flags)).toMatchObject(done(/Code lifetime +2 min\n/))
    expect(await otpd('app', 'update', 'web', '--locale', '')).toMatchObject({ exitCode: 0 })
    expect(await runForData('app', 'get', appId)).toMatchObject({
      otpTtlSeconds: 120,
      defaultLocale: null,
      webOtpDomain: 'example.com',
    })
    await expectNegative(otpd('app', 'update', 'web', '--otp-ttl', '5', '--json'), 2, 'INVALID_ARGUMENT')

    expect(await otpd('app', 'disable', 'web')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /^Error: There is no terminal to confirm this on\.\n {2}Confirm it with --yes\./,
      ),
    })
    expect(await otpd('app', 'disable', 'web', '--yes')).toMatchObject(
      done('✓ Application web is disabled\n'),
    )
    expect((await otpd('otp', 'send', '+14155550100', ...envFile)).exitCode).toBe(4)
    expect(await otpd('app', 'enable', 'web')).toMatchObject(done('✓ Application web is active\n'))
  })

  test('rotate replaces a credential, and the old file no longer works', async () => {
    await runForData('app', 'create', 'turn', '--project', 'shop', '--env', 'test', '--env-file', 'turn.env')
    const before = (await otpd('app', 'secret', 'turn')).stdout
    expect(before).toMatch(/^whsec_\S+\n$/)
    expect(await otpd('rotate', 'turn', 'webhook-secret', '--yes')).toMatchObject(done(/^whsec_\S+\n$/))
    expect((await otpd('app', 'secret', 'turn')).stdout).not.toBe(before)

    expect((await otpd('rotate', 'turn', 'api')).exitCode).toBe(2)
    expect(await otpd('rotate', 'turn', 'api', '--yes')).toMatchObject(done(/^ph_test_api_\S+\n$/))
    expect((await otpd('otp', 'send', '+14155550100', '--env-file', 'turn.env')).exitCode).toBe(4)

    const saved = await otpd('rotate', 'turn', 'secret', '--yes', '--env-file', 'new.env')
    expect(saved).toMatchObject(done(/^Saved to new\.env/))
    const path = join(server.home, 'new.env')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path, 'utf8')).toMatch(/^OTPD_CLIENT_SECRET=ph_test_secret_\S+$/m)
    expect((await otpd('rotate', 'turn', 'secret', '--yes', '--env-file', 'new.env')).exitCode).toBe(2)

    expect(await otpd('app', 'rm', 'turn', '--yes')).toMatchObject(done('✓ Application turn deleted\n'))
    await expectNegative(otpd('app', 'get', 'turn', '--json'), 5, 'NOT_FOUND')
  })
})

describe('otp', () => {
  test('list, get and cancel', async () => {
    const { requestId } = await send('+14155550101')
    expect(await otpd('otp', 'cancel', requestId, ...envFile)).toMatchObject(
      done('✓ The code for +14155550101 is canceled\n'),
    )
    expect(await otpd('otp', 'get', requestId)).toMatchObject(done(/Status +○ canceled\n/))
    expect(await otpd('otp', 'get', requestId, ...envFile)).toMatchObject(done(/Status +○ canceled\n/))
    expect(await otpd('otp', 'list', '--status', 'canceled', '--app', 'web')).toMatchObject(
      done(new RegExp(requestId)),
    )
    await expectNegative(otpd('otp', 'cancel', requestId, ...envFile, '--json'), 6, 'OTP_CANCELED')
    await expectNegative(otpd('otp', 'get', 'otp_none', '--json'), 5, 'NOT_FOUND')
  })

  test('resend has to wait', async () => {
    const { requestId } = await send('+14155550102')
    const result = await otpd('otp', 'resend', requestId, ...envFile)
    expect(result).toMatchObject({ exitCode: 7, stdout: '' })
    expect(result.stderr).toMatch(/Try again in \d+ s\./)
  })
})

describe('webhook', () => {
  const create = (url: string, events: string) =>
    runForData('webhook', 'create', '--app', 'web', '--url', url, '--events', events)

  test('create, list, get, update, disable, enable and delete', async () => {
    const { id } = await create(receiver.url, 'otp.verified,otp.failed')
    expect(await otpd('webhook', 'list', '--app', 'web')).toMatchObject(done(/● enabled/))
    expect(await otpd('webhook', 'get', id)).toMatchObject(done(/Events +otp\.verified, otp\.failed\n/))
    expect(await otpd('webhook', 'update', id, '--events', '*')).toMatchObject(done(/Events +all\n/))
    expect(await otpd('webhook', 'disable', id)).toMatchObject(done(/is disabled\n$/))
    expect(await otpd('webhook', 'enable', id)).toMatchObject(done(/is enabled\n$/))
    expect((await otpd('webhook', 'delete', id)).exitCode).toBe(2)
    expect(await otpd('webhook', 'delete', id, '--yes')).toMatchObject(done(/deleted\n$/))
    expect((await otpd('webhook', 'list')).stdout).toStartWith('No webhooks yet.')
    expect(await runForData('webhook', 'list')).toEqual([])
  })

  test('test is 0 when the event is delivered, and 8 when it is not', async () => {
    const { id } = await create(receiver.url, '*')
    expect(await otpd('webhook', 'test', id)).toMatchObject(done(/← 200 {2}delivered\n$/))
    await otpd('webhook', 'update', id, '--url', broken.url)
    const refused = await otpd('webhook', 'test', id)
    expect(refused).toMatchObject({ exitCode: 8, stderr: '' })
    expect(refused.stdout).toContain('← 503  not delivered\n  Only 200 to 299')
    const json = await otpd('webhook', 'test', id, '--json')
    expect(json).toMatchObject({ exitCode: 8, stderr: '' })
    expect(JSON.parse(json.stdout).data).toEqual({ delivered: false, statusCode: 503 })
    await otpd('webhook', 'delete', id, '--yes')
  })

  test('deliveries are listed, shown and sent again', async () => {
    const { id } = await create(receiver.url, 'otp.sent')
    expect((await otpd('webhook', 'deliveries', id)).stdout).toStartWith('No deliveries yet.')
    const before = receiver.received.length
    await send('+14155550103')
    await receiver.waitForCount(before + 1)
    const [delivery] = await runForData('webhook', 'deliveries', id)
    expect(await otpd('webhook', 'deliveries', id, '--type', 'otp.sent')).toMatchObject(
      done(new RegExp(delivery.id)),
    )
    expect(await otpd('webhook', 'redeliver', id, delivery.id)).toMatchObject(
      done('✓ otp.sent is queued for delivery again\n'),
    )
    await receiver.waitForCount(before + 2)
    const [first, second] = receiver.received.slice(before)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'] ?? '')
    expect(await otpd('webhook', 'deliveries', id, delivery.id)).toMatchObject(
      done(/ATTEMPT \(UTC\) +RESULT/),
    )
    await otpd('webhook', 'delete', id, '--yes')
  })
})

describe('user and analytics', () => {
  test('are empty at first, then count verified codes', async () => {
    expect((await otpd('user', 'list')).stdout).toStartWith('No phones verified yet.')
    await expectNegative(otpd('user', 'get', '+14155550104', '--json'), 5, 'NOT_FOUND')
    const { requestId } = await send('+14155550104')
    await otpd('otp', 'verify', requestId, '424242', ...envFile)
    expect(await otpd('user', 'list')).toMatchObject(done(/^\+14155550104 +US +1 /m))
    expect(await otpd('user', 'get', '+14155550104')).toMatchObject(done(/Verifications +1\n/))
    expect(await otpd('analytics', '--range', '7d')).toMatchObject(done(/^verified +·{6}█ +1 +1/m))
    expect(await otpd('analytics', 'summary')).toMatchObject(done(/^Verified +1 \(\d+%\)$/m))
    const { stdout } = await otpd('analytics', 'timeseries', '--csv')
    expect(stdout.trimEnd().split('\n')).toHaveLength(31)
    expect(await otpd('analytics', '--watch')).toMatchObject({ exitCode: 2, stdout: '' })
  })
})

test('every --json is the body of the API', async () => {
  const headers = { authorization: `Bearer ${(await otpd('auth', 'token')).stdout.trim()}` }
  const { requestId } = await send('+14155550105')
  const equal: [string, string][] = [
    ['project list', '/v1/projects'],
    ['project get shop', `/v1/projects/${projectId}`],
    ['app list', '/v1/applications'],
    ['app get web', `/v1/applications/${appId}`],
    ['app secret web', `/v1/applications/${appId}/webhook-secret`],
    ['otp list --limit 2', '/v1/otp?limit=2'],
    [`otp get ${requestId}`, `/v1/otp/${requestId}`],
    ['webhook list', '/v1/webhooks'],
    ['user list', '/v1/users'],
    ['analytics', '/v1/analytics/timeseries'],
    ['analytics summary', '/v1/analytics/summary'],
    ['analytics timeseries --range 90d', '/v1/analytics/timeseries?range=90d'],
    ['profile get', '/v1/developer/me'],
  ]
  for (const [line, path] of equal) {
    const body = await (await fetch(`${server.url}${path}`, { headers })).text()
    expect([line, await otpd(...line.split(' '), '--json')]).toEqual([
      line,
      { exitCode: 0, stdout: `${body}\n`, stderr: '' },
    ])
  }
})

describe('profile', () => {
  test('get and update', async () => {
    expect(await otpd('profile', 'get')).toMatchObject(done(/^ada@example\.com\n {2}Name +Ada\n/))
    expect(await otpd('profile', 'update', '--company', 'Engines')).toMatchObject(done(/Company +Engines\n/))
  })

  test('password ends every session, and the new one logs in', async () => {
    const change = ['profile', 'password', '--password-stdin']
    const wrong = await server.otpd([...change, '--json'], { input: 'not it at all\nanother correct horse' })
    expect(wrong).toMatchObject({ exitCode: 6, stdout: '' })
    const input = `${password}\nanother correct horse\n`
    const result = await server.otpd(change, { input })
    expect(result).toMatchObject(done('✓ Password changed; every session has ended\n'))
    expect(result.stderr).toContain('otpd login')
    const login = ['login', '--email', email, '--password-stdin']
    expect((await server.otpd(login, { input: password })).exitCode).toBe(4)
    expect((await server.otpd(login, { input: 'another correct horse' })).exitCode).toBe(0)
  })
})
