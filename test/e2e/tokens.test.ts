import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { readEventStream } from '../helpers/event-stream.ts'
import { startFakeOidcProvider } from '../helpers/oidc.ts'

// Attacks with tokens on the compiled binary: each was possible, or would be without the check that it tests.

const password = 'correct horse battery'
const newPassword = 'another horse battery'
let server: RunningServer
let persons = 0

beforeAll(async () => void (server = await startServer()))
afterAll(() => server.stop())

const call = (token: string, path = '/v1/developer/me', init: RequestInit = {}, url = server.url) =>
  fetch(url + path, {
    ...init,
    headers: { authorization: `Bearer ${token}`, ...(init.body && { 'content-type': 'application/json' }) },
  })

async function outcome(token: string, path?: string, url?: string): Promise<[number, string | undefined]> {
  const response = await call(token, path, {}, url)
  const { error }: { error?: { reason?: string } } = JSON.parse(await response.text())
  return [response.status, error?.reason]
}

async function addAccount() {
  const email = `person-${++persons}@example.com`
  const args = ['admin', 'create', '--email', email, '--password-stdin', '--data-dir', server.dataDir]
  expect((await server.otpd(args, { input: password })).exitCode).toBe(0)
  return email
}

const host = (args: string[], input?: string) =>
  server.otpd([...args, '--data-dir', server.dataDir], input === undefined ? {} : { input })

async function logIn(email: string, secret = password) {
  const form = { grant_type: 'password', username: email, password: secret }
  const response = await fetch(`${server.url}/v1/auth/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  const tokens: { id_token: string; refresh_token: string } = JSON.parse(await response.text())
  return { idToken: tokens.id_token, refreshToken: tokens.refresh_token }
}

const logOut = (token: string) =>
  fetch(`${server.url}/v1/auth/revoke`, { method: 'POST', body: new URLSearchParams({ token }) })

async function openStream(token: string) {
  const stream = readEventStream((await call(token, '/v1/logs/stream')).body)
  expect(await stream.next()).toMatchObject({ id: expect.stringMatching(/^evt_/) })
  return stream
}

/** Reads a stream to its end. @returns the reason, and how long it took */
async function readEnd(stream: ReturnType<typeof readEventStream>) {
  const startedAt = performance.now()
  let reason: unknown
  for (let message = await stream.next(); message; message = await stream.next())
    if (message.event === 'end') reason = JSON.parse(message.data ?? '{}').reason
  return { reason, tookMs: performance.now() - startedAt }
}

async function createToken(idToken: string, body: object) {
  const response = await call(idToken, '/v1/tokens', { method: 'POST', body: JSON.stringify(body) })
  const { data }: { data: { id: string; token: string } } = JSON.parse(await response.text())
  return data
}

describe('an ID token', () => {
  test('is refused after the logout, and its streams end at once; other sessions go on', async () => {
    const email = await addAccount()
    const [session, other] = [await logIn(email), await logIn(email)]
    expect(await outcome(session.idToken)).toEqual([200, undefined])
    const stream = await openStream(session.idToken)
    const otherStream = await openStream(other.idToken)
    const ended = readEnd(stream)
    await logOut(session.refreshToken)
    expect(await outcome(session.idToken)).toEqual([401, 'TOKEN_REVOKED'])
    const { reason, tookMs } = await ended
    expect(reason).toBe('token_revoked')
    // Sooner than the two seconds after which streams look for changes of other nodes.
    expect(tookMs).toBeLessThan(1500)
    expect(await outcome(session.idToken, '/v1/logs/stream')).toEqual([401, 'TOKEN_REVOKED'])
    expect(await outcome(other.idToken)).toEqual([200, undefined])
    await otherStream.cancel()
  })

  test('is refused after a password reset on the host, with or without a session', async () => {
    const email = await addAccount()
    const { idToken } = await logIn(email)
    const fromHost = (await host(['admin', 'token', email, '--quiet', '--server', server.url])).stdout.trim()
    expect(await outcome(fromHost)).toEqual([200, undefined])
    const streams = [await openStream(idToken), await openStream(fromHost)]
    await host(['admin', 'reset-password', email, '--password-stdin'], newPassword)
    // Issued in the same second, most of the time.
    const fresh = await logIn(email, newPassword)
    expect(await outcome(fresh.idToken)).toEqual([200, undefined])
    for (const token of [idToken, fromHost]) expect(await outcome(token)).toEqual([401, 'TOKEN_REVOKED'])
    for (const stream of streams) expect((await readEnd(stream)).reason).toBe('token_revoked')
  })

  test('stays refused when a disabled account is enabled again', async () => {
    const email = await addAccount()
    const { idToken } = await logIn(email)
    const stream = await openStream(idToken)
    await host(['admin', 'disable', email, '--yes'])
    expect(await outcome(idToken)).toEqual([403, 'ACCOUNT_NOT_ALLOWED'])
    expect((await readEnd(stream)).reason).toBe('not_allowed')
    await host(['admin', 'enable', email])
    expect(await outcome(idToken)).toEqual([401, 'TOKEN_REVOKED'])
    expect(await outcome((await logIn(email)).idToken)).toEqual([200, undefined])
  })

  test('of an external provider is refused if it is valid for ten years or not in strict base64url', async () => {
    const provider = await startFakeOidcProvider()
    const external = await startServer({
      env: { OTPD_OIDC_ISSUER: provider.issuer, OTPD_OIDC_AUDIENCE: provider.audience, OTPD_SIGNUP: 'open' },
    })
    try {
      const valid = await provider.sign(Date.now(), { sid: 'session of the provider' })
      expect(await outcome(valid, undefined, external.url)).toEqual([200, undefined])
      const exp = Math.floor(Date.now() / 1000) + 3650 * 86_400
      const long = await provider.sign(Date.now(), { exp })
      expect(await outcome(long, undefined, external.url)).toEqual([401, 'TOKEN_INVALID'])
      await external.waitForLog('auth.tokenMaxHours')
      for (const form of [`${valid}=`, `${valid.slice(0, -9)}%${valid.slice(-9)}`, `${valid}.`])
        expect(await outcome(form, undefined, external.url)).toEqual([401, 'TOKEN_INVALID'])
    } finally {
      await external.stop()
      await provider.stop()
    }
  })
})

describe('an API token', () => {
  test('does on the command line what its scopes allow', async () => {
    const email = await addAccount()
    const { idToken } = await logIn(email)
    const as = (token: string) => ({ env: { OTPD_TOKEN: token } })
    const created = await server.otpd(['token', 'create', 'ci', '--scope', 'read', '--quiet'], as(idToken))
    const token = created.stdout.trim()
    expect(token).toMatch(/^otpd_pat_[0-9a-f]{48}$/)
    expect((await server.otpd(['project', 'list'], as(token))).exitCode).toBe(0)
    const refused = await server.otpd(['project', 'create', 'shop'], as(token))
    expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('lacks the scope write')])
    expect((await server.otpd(['token', 'list'], as(token))).exitCode).toBe(4)
    const listed = await server.otpd(['token', 'list', '--json'], as(idToken))
    expect(JSON.parse(listed.stdout).data).toMatchObject([{ name: 'ci', lastUsedAt: expect.any(String) }])
    expect((await server.otpd(['token', 'revoke', 'ci', '--yes'], as(idToken))).exitCode).toBe(0)
    const revoked = await server.otpd(['project', 'list'], as(token))
    expect([revoked.exitCode, revoked.stderr]).toEqual([4, expect.stringContaining('came from OTPD_TOKEN')])
  })

  test('logs in by standard input, even if it may not read the profile', async () => {
    const { idToken } = await logIn(await addAccount())
    const { token } = await createToken(idToken, { name: 'ci', scopes: ['otp:read'] })
    expect((await server.otpd(['login', '--token-stdin'], { input: token })).exitCode).toBe(0)
    expect((await server.otpd(['user', 'list'])).exitCode).toBe(0)
    const whoami = await server.otpd(['whoami'])
    expect([whoami.exitCode, whoami.stdout]).toEqual([0, expect.stringContaining('API token\n')])
    const refused = await server.otpd(['whoami', '--json'])
    expect([refused.exitCode, refused.stderr + refused.stdout]).toEqual([
      4,
      expect.stringContaining('SCOPE_MISSING'),
    ])
    const inbox = await server.otpd(['inbox'])
    expect(inbox.stderr).toContain(
      'The owner of the account creates one with: otpd token create NAME --scope write',
    )
    expect((await server.otpd(['token', 'list'])).stderr).toContain('Log in with: otpd login')
    expect((await server.otpd(['login', '--token-stdin'], { input: `${token}0` })).exitCode).toBe(4)
    expect((await server.otpd(['logout'])).exitCode).toBe(0)
  })

  test('ends its streams when it is revoked or expires', async () => {
    const { idToken } = await logIn(await addAccount())
    const { id, token } = await createToken(idToken, { name: 'revoked', scopes: ['otp:read'] })
    const expiresAt = new Date(Date.now() + 1500).toISOString()
    const expiring = await createToken(idToken, { name: 'expiring', scopes: ['otp:read'], expiresAt })
    const [ended, expired] = [readEnd(await openStream(token)), readEnd(await openStream(expiring.token))]
    await call(idToken, `/v1/tokens/${id}`, { method: 'DELETE' })
    const { reason, tookMs } = await ended
    expect(reason).toBe('token_revoked')
    expect(tookMs).toBeLessThan(1500)
    expect((await expired).reason).toBe('token_expired')
    expect(await outcome(expiring.token)).toEqual([401, 'TOKEN_EXPIRED'])
  })

  test('outlives the session that created it, and ends with the account', async () => {
    const email = await addAccount()
    const { idToken, refreshToken } = await logIn(email)
    const { token } = await createToken(idToken, { name: 'ci', scopes: ['read'] })
    await logOut(refreshToken)
    expect(await outcome(token)).toEqual([200, undefined])
    await host(['admin', 'disable', email, '--yes'])
    expect(await outcome(token)).toEqual([403, 'ACCOUNT_NOT_ALLOWED'])
    await host(['admin', 'delete', email, '--yes'])
    expect(await outcome(token)).toEqual([401, 'TOKEN_INVALID'])
  })

  test('is never in the log, nor is a wrong one', async () => {
    const { idToken } = await logIn(await addAccount())
    const { token } = await createToken(idToken, { name: 'ci', scopes: ['read'] })
    await call(token)
    await call(token.slice(0, -1) + (token.endsWith('0') ? '1' : '0'), `/v1/projects/${token}`)
    expect(server.log()).not.toContain(token.slice(0, 20))
  })
})
