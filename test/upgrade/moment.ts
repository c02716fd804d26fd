import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCaller } from './calls.ts'
import { createProcessClock, type ProcessClock } from '../helpers/process-clock.ts'
import { listAllDifferences, listDifferences } from './comparison.ts'
import type { Fixture } from './fixture.ts'
import { callApi, poll, requestTokens, type Call } from './http.ts'
import { startInstance, allowWebhooks, type Instance, type InstanceOptions } from './instance.ts'
import { textAt } from './json.ts'
import { isSignedWith, type Receivers } from './receivers.ts'
import { callAll, heldCredentials, readCommand } from './recording.ts'
import { callFacade, currentTotp } from './seed/newer-state.ts'
import { applicationHeaders, minuteMs } from './world.ts'

/**
 * Defines tests of a server that starts a second after the old one has stopped: open requests, limits and sessions go on.
 * They share one installation and run in their order.
 */
export function defineMomentTests(
  fixture: Fixture,
  receivers: Receivers,
  unpack: (env: Record<string, string>) => InstanceOptions,
): void {
  const { open } = fixture
  /** Whether it is the first release, which did a few things differently. */
  const is010 = fixture.version === '0.1.0'
  const folder = mkdtempSync(join(tmpdir(), 'otpd-clock-'))
  const credentials = heldCredentials(fixture)
  let clock: ProcessClock
  let instance: Instance

  beforeAll(async () => {
    clock = createProcessClock(folder, fixture.endedAt + 1000)
    instance = await startInstance(unpack({ ...clock.env, ...allowWebhooks('127.0.0.1') }))
  })
  afterAll(async () => {
    await instance.stop()
    clock.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const call = (as: string, path: string, options: Call = {}) =>
    callApi(instance.url, path, {
      method: 'POST',
      ...options,
      headers: { ...credentials[as], ...options.headers },
    })
  const verify = (as: string, { id, code }: { id: string; code: string }) =>
    call(as, '/v1/otp/verify', { body: { requestId: id, code } })

  test('every GET and every command responds as before', async () => {
    const answers = await callAll(fixture.answers, createCaller(instance.url, credentials))
    expect(listAllDifferences(fixture.answers, answers)).toEqual([])
    for (const { args, data } of fixture.commands) {
      // The guard has other rules since, so no decision of before counts.
      if (args[0] === 'guard') continue
      const actual = { status: 200, body: await readCommand(instance, args) }
      expect(listDifferences({ status: 200, body: data }, actual)).toEqual([])
    }
  })

  test('phones that were verified before are evidence for the guard', async () => {
    const status = (await readCommand(instance, ['guard', 'status', '--json'])) as {
      allowances: Array<{ verifiedPhones: number }>
    }
    expect(status.allowances.some(({ verifiedPhones }) => verifiedPhones > 0)).toBe(true)
  })

  test('cursors of before go on, except those of 0.1.0, which showed the position', async () => {
    const old = fixture.answers.filter(({ path }) => path.includes('&cursor='))
    expect(old.length).toBeGreaterThan(0)
    for (const recorded of old) {
      const page = await call(recorded.as, recorded.path, { method: 'GET' })
      if (is010) expect(page).toMatchObject({ status: 400, body: { error: { reason: 'CURSOR_INVALID' } } })
      else expect(listDifferences(recorded, page)).toEqual([])
    }
  })

  test('limits are still spent', async () => {
    // Failed logins start at zero after 0.1.0, which kept 15 minutes of them under hashes without a key: the new ones, with
    // a key, cannot be computed from those.
    const { email: username = '', password = '' } = fixture.accounts['bob'] ?? {}
    const login = await requestTokens(instance.url, { grant_type: 'password', username, password })
    expect(login).toMatchObject({ status: is010 ? 200 : 429 })
    const sent = await call('desk', '/v1/otp/send', { body: { phone: '+15125550166' } })
    expect(sent).toMatchObject({ status: 429, body: { error: { reason: 'APP_RATE' } } })
    const checked = await verify('web', open.locked)
    expect(checked).toMatchObject({ status: 429, body: { error: { reason: 'PHONE_CHECK_BUDGET' } } })
    const resent = await call('sandbox', '/v1/otp/resend', { body: { requestId: open.resentThrice.id } })
    expect(resent).toMatchObject({ status: 409, body: { error: { reason: 'RESENDS_EXHAUSTED' } } })
  })

  test('idempotency keys are still known', async () => {
    const { key, body, sent } = open.idempotent
    const headers = { 'idempotency-key': key }
    const repeated = await call('web', '/v1/otp/send', { headers, body })
    expect(repeated).toMatchObject({ status: 201, body: { data: { requestId: sent.id } } })
    const other = await call('web', '/v1/otp/send', { headers, body: { phone: '+15125550199' } })
    expect(other.status).toBe(422)
  })

  test('codes that were sent before verify now, and only once', async () => {
    const { pendingLive, pendingTest, almostExhausted, idempotent } = open
    expect((await verify('web', pendingLive)).status).toBe(200)
    expect((await verify('web', pendingLive)).status).toBe(409)
    expect((await verify('sandbox', pendingTest)).status).toBe(200)
    expect((await verify('web', idempotent.sent)).status).toBe(200)
    const wrong = { ...almostExhausted, code: almostExhausted.code === '000000' ? '000001' : '000000' }
    expect((await verify('sandbox', wrong)).status).toBe(400)
    expect((await verify('sandbox', almostExhausted)).status).toBe(410)
  })

  test('credentials of applications hold, and wrong ones do not', async () => {
    const body = { phone: '+15125550188' }
    for (const name of ['web', 'sandbox']) {
      expect((await call(name, '/v1/otp/send', { body })).status).toBe(201)
    }
    expect((await call('legacy', '/v1/otp/send', { body })).status).toBe(403)
    expect((await call('removed', '/v1/otp/send', { body })).status).toBe(401)
    const { web, sandbox } = fixture.applications
    if (!web || !sandbox) throw new Error('The fixture has no applications.')
    const mixed = applicationHeaders({ ...web, clientSecret: sandbox.clientSecret })
    expect((await call('anonymous', '/v1/otp/send', { body, headers: mixed })).status).toBe(401)
  })

  test('a setup token still makes an account', async () => {
    const setup = await requestTokens(instance.url, {
      grant_type: 'urn:otpd:setup-token',
      setup_token: open.setupToken,
      email: 'eve@example.com',
      password: 'a password of eve',
      name: 'Eve',
    })
    expect(setup.status).toBe(200)
  })

  describe.if(!is010)('what 0.1.0 did not have', () => {
    const newer = () => open.newer ?? expect.unreachable('the fixture has no such state')

    test('codes verify by their phone, and through the façade', async () => {
      const { byPhone, byFacade } = newer()
      const { phone, code } = byPhone
      expect((await call('web', '/v1/otp/verify', { body: { phone, code } })).status).toBe(200)
      const { web = expect.unreachable('the fixture has no such application') } = fixture.applications
      const fields = { To: byFacade.phone, Code: byFacade.code }
      const checked = await callFacade(instance.url, web, '/VerificationCheck', fields)
      expect(checked).toMatchObject({ status: 200, body: { status: 'approved' } })
    })

    test('a delivered message is not sent again for its idempotency key', async () => {
      const { relayed } = newer()
      const headers = { 'idempotency-key': relayed.key }
      const repeated = await call('web', '/v1/otp/deliver', { headers, body: relayed.body })
      expect(repeated).toMatchObject({ status: 200, body: { data: { id: relayed.id } } })
    })

    test('API tokens hold, within their scopes', async () => {
      const headers = { authorization: `Bearer ${newer().apiToken}` }
      expect((await call('anonymous', '/v1/projects', { method: 'GET', headers })).status).toBe(200)
      const written = await call('anonymous', '/v1/projects', { headers, body: { name: 'new' } })
      expect(written.status).toBe(403)
    })

    test('a second factor is still required, with the same secret', async () => {
      const { email: username, password, secret } = newer().secondFactor
      const form = { grant_type: 'password', username, password }
      expect((await requestTokens(instance.url, form)).status).not.toBe(200)
      // A code works once, and the scenario used one.
      clock.advance(minuteMs)
      const totp = currentTotp(secret, clock.now())
      expect((await requestTokens(instance.url, { ...form, totp })).status).toBe(200)
    })
  })

  test('webhooks that waited are delivered, signed with the same secret', async () => {
    const { pendingEndpoint } = open
    const target = { method: 'PATCH', body: { url: `${receivers.url}/upgraded` } }
    expect((await call('ada', `/v1/webhooks/${pendingEndpoint}`, target)).status).toBe(200)
    const before = receivers.received.length
    clock.advance(40 * minuteMs)
    const deliveries = await poll(
      async () => receivers.received.slice(before).filter(({ path }) => path === '/upgraded'),
      (received) => received.length === 2,
      'both deliveries arrive',
    )
    const secret = fixture.applications['web']?.webhookSecret ?? ''
    for (const delivery of deliveries) {
      expect(isSignedWith(secret, delivery)).toBeTrue()
      expect(isSignedWith(secret, { ...delivery, body: `${delivery.body} ` })).toBeFalse()
      expect(JSON.parse(delivery.body)).toMatchObject({ id: delivery.id, type: 'otp.canceled' })
    }
  })

  test('sessions go on, and passwords open new ones', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: open.refreshToken }
    const refreshed = await requestTokens(instance.url, form)
    const headers = { authorization: `Bearer ${textAt(refreshed.body, 'id_token')}` }
    expect((await call('anonymous', '/v1/projects', { method: 'GET', headers })).status).toBe(200)
    const { email: username = '', password = '' } = fixture.accounts['bob'] ?? {}
    const login = await requestTokens(instance.url, { grant_type: 'password', username, password })
    expect(login.status).toBe(200)
  })
}
