import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { openBrowser } from '../../../cli/terminal/terminal.ts'
import { writeStoredLogins } from '../../../cli/session/credentials-file.ts'
import { createHome, createScriptedServer, errorResponse, type RequestHandler } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>
let server: ReturnType<typeof createScriptedServer>
let provider: ReturnType<typeof createScriptedServer>
let metadata: Record<string, unknown>
let tokenEndpoint: RequestHandler
let deviceEndpoint: () => Response

/** Makes an ID token of the provider; nothing here verifies its signature. */
function idToken(claims: object = {}) {
  const nowSeconds = Math.floor(Date.now() / 1000)
  const standard = { iss: provider.url, aud: 'cli', sub: 'ada', iat: nowSeconds, exp: nowSeconds + 300 }
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part({ ...standard, ...claims })}.c2ln`
}

const oauthError = (error: string, status = 400) => Response.json({ error }, { status })
const grant = (extra: object = {}) =>
  Response.json({ access_token: 'access', token_type: 'Bearer', expires_in: 300, ...extra })

beforeEach(() => {
  home = createHome()
  tokenEndpoint = () => grant({ id_token: idToken() })
  provider = createScriptedServer(async (recordedRequest) => {
    if (recordedRequest.path === '/.well-known/openid-configuration') return Response.json(metadata)
    if (recordedRequest.path === '/token') return await tokenEndpoint(recordedRequest)
    return deviceEndpoint()
  })
  deviceEndpoint = () => {
    const device = { device_code: 'd', user_code: 'ABCD-EFGH', verification_uri: `${provider.url}/device` }
    return Response.json({ ...device, expires_in: 600, interval: 1 })
  }
  metadata = {
    issuer: provider.url,
    authorization_endpoint: `${provider.url}/authorize`,
    device_authorization_endpoint: `${provider.url}/device`,
    token_endpoint: `${provider.url}/token`,
    scopes_supported: ['openid'],
  }
  server = createScriptedServer(({ path }) =>
    path === '/v1/auth/config'
      ? Response.json({ data: { kind: 'oidc', issuer: provider.url, clientId: 'cli' } })
      : Response.json({ data: [], pagination: { limit: 50, nextCursor: null } }),
  )
})

afterEach(() => {
  home.remove()
  void server.stop()
  void provider.stop()
})

const login = (...args: string[]) => home.otpd(['login', '--server', server.url, ...args])

/** Skips the waiting times of the library, and records them in seconds. Timers that an earlier test left go on as they are. */
function mockTimers() {
  const waitSeconds: number[] = []
  const realSetTimeout = globalThis.setTimeout
  const timerSpy = spyOn(globalThis, 'setTimeout').mockImplementation(
    Object.assign((callback: () => void, waitMs = 0) => {
      const isSkipped = waitMs >= 1000 && new Error('who waits').stack?.includes('/openid-client/') === true
      if (isSkipped) waitSeconds.push(waitMs / 1000)
      return realSetTimeout(callback, isSkipped ? 0 : waitMs)
    }, realSetTimeout),
  )
  return { waitSeconds, [Symbol.dispose]: () => timerSpy.mockRestore() }
}

describe('login --device', () => {
  test('polls until the login is complete, and more slowly when asked to', async () => {
    using clock = mockTimers()
    const responses = [oauthError('authorization_pending'), oauthError('slow_down')]
    tokenEndpoint = () => responses.shift() ?? grant({ id_token: idToken(), refresh_token: 'refresh' })
    expect(await login('--device')).toMatchObject({ exitCode: 0, stdout: '' })
    // RFC 8628 §3.5: slow_down adds five seconds to this and all later intervals.
    expect(clock.waitSeconds).toEqual([1, 1, 5, 1])
  })

  test('goes on, more slowly, after a provider was unavailable for a moment', async () => {
    using clock = mockTimers()
    const responses = [new Response('busy', { status: 502 }), oauthError('authorization_pending')]
    tokenEndpoint = () => responses.shift() ?? grant({ id_token: idToken(), refresh_token: 'refresh' })
    expect(await login('--device')).toMatchObject({ exitCode: 0, stdout: '' })
    expect(clock.waitSeconds).toEqual([1, 5, 1, 5, 1])
  })

  test.each([
    ['expired_token', 'Start again with: otpd login --device\n'],
    ['access_denied', 'Try again with: otpd login\n'],
  ])('that ends with %s is 4', async (error, hint) => {
    using _clock = mockTimers()
    tokenEndpoint = () => oauthError(error)
    const result = await login('--device')
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain(hint)
    expect(existsSync(home.credentials)).toBe(false)
  })

  test('without a refresh token says when the login expires', async () => {
    using _clock = mockTimers()
    const result = await login('--device')
    expect(result.stderr).toContain('and cannot be renewed')
  })

  test.each([
    [
      'verified',
      { email_verified: true },
      'An operator can admit you with: otpd admin create --email eve@example.com\n',
    ],
    ['not verified', { email_verified: false }, 'An operator can admit you with: OTPD_SIGNUP=open\n'],
    ['not known to be verified', {}, 'An operator can admit you with: OTPD_SIGNUP=open\n'],
  ])('of a person who is not admitted, whose address is %s', async (_, claims, hint) => {
    using _clock = mockTimers()
    void server.stop()
    server = createScriptedServer(({ path }) =>
      path === '/v1/auth/config'
        ? Response.json({ data: { kind: 'oidc', issuer: provider.url, clientId: 'cli' } })
        : errorResponse(403, 'FORBIDDEN', 'This account is not allowed to use the service.'),
    )
    tokenEndpoint = () => grant({ id_token: idToken({ email: 'eve@example.com', ...claims }) })
    const result = await login('--device')
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toEndWith(hint)
    expect(result.stderr.includes('email_verified')).toBe(hint.includes('OTPD_SIGNUP'))
  })

  test('shows the code to enter even with --quiet', async () => {
    using _clock = mockTimers()
    expect((await login('--device', '--quiet')).stderr).toContain('ABCD-EFGH')
  })
})

describe('login in the browser', () => {
  test('waits five minutes', async () => {
    const result = await login()
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain('The login was not completed within 5 min.')
  })

  test('requests a refresh token only if the provider supports it', async () => {
    expect((await login()).stderr).toContain('scope=openid+email+profile&')
    metadata.scopes_supported = ['openid', 'offline_access']
    expect((await login()).stderr).toContain('scope=openid+email+profile+offline_access&prompt=consent&')
  })

  test('uses the callback port that the provider allows, unless it is in use', async () => {
    const { port } = new URL(server.url)
    const result = await login('--callback-port', port)
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain(`Port ${port} on this machine is already in use.`)
    for (const port of ['http', '70000']) expect((await login('--callback-port', port)).exitCode).toBe(2)
  })
})

describe('a provider', () => {
  test.each([
    ['without a login in a browser', 'authorization_endpoint', []],
    ['without a login for other devices', 'device_authorization_endpoint', ['--device']],
  ])('%s is reported differently from a broken one', async (_, endpoint, flags) => {
    delete metadata[endpoint]
    const result = await login(...flags)
    expect(result).toMatchObject({ exitCode: 1, stdout: '' })
    expect(result.stderr).toContain('--token-stdin')
  })

  test.each(['file:///etc/passwd', 'otpd-helper://run', 'nowhere'])(
    'with the login page %s is a provider fault, and opens nothing',
    async (endpoint) => {
      metadata.authorization_endpoint = endpoint
      const result = await login()
      expect(result).toMatchObject({ exitCode: 1, stdout: '' })
      expect(result.stderr).toContain('does not respond like an OpenID provider')
      expect(result.stderr).not.toContain('Waiting')
    },
  )

  test('with an invalid issuer is a provider fault', async () => {
    void server.stop()
    server = createScriptedServer(() =>
      Response.json({ data: { kind: 'oidc', issuer: 'nowhere', clientId: 'cli' } }),
    )
    const result = await login('--device')
    expect(result).toMatchObject({ exitCode: 1, stdout: '' })
    expect(result.stderr).toContain('nowhere is not a valid URL.')
  })

  test('with the metadata of another issuer is a provider fault', async () => {
    metadata.issuer = 'https://other.example'
    const result = await login()
    expect(result).toMatchObject({ exitCode: 1, stdout: '' })
    expect(result.stderr).toContain('does not respond like an OpenID provider')
  })

  test('that cannot be reached is 3', async () => {
    void provider.stop()
    const result = await login()
    expect(result).toMatchObject({ exitCode: 3, stdout: '' })
    expect(result.stderr).toContain(`Cannot reach ${provider.url} (connection refused).`)
  })

  test.each([429, 502, 503])('that is unavailable (%d) is 3, and not called broken', async (status) => {
    deviceEndpoint = () => new Response('<html>unavailable</html>', { status })
    const result = await login('--device')
    expect(result).toMatchObject({ exitCode: 3, stdout: '' })
    expect(result.stderr).toContain(`${provider.url} is unavailable at the moment (HTTP ${status}).`)
    expect(result.stderr).toContain('Try again later')
    expect(result.stderr).not.toContain('OTPD_OIDC_ISSUER')
  })

  test('that does not know this client points to the setting', async () => {
    using _clock = mockTimers()
    tokenEndpoint = () => oauthError('invalid_client', 401)
    const result = await login('--device')
    expect(result).toMatchObject({ exitCode: 6, stdout: '' })
    expect(result.stderr).toContain('OTPD_OIDC_CLIENT_ID')
  })
})

describe('a session of a provider', () => {
  beforeEach(storeLogin)

  function storeLogin() {
    const storedLogin = {
      email: null,
      idToken: idToken(),
      idTokenExpiresAt: '2020-01-01T00:00:00.000Z',
      refreshToken: 'refresh-1',
      provider: { issuer: provider.url, clientId: 'cli' },
    }
    writeStoredLogins(home.credentials, {
      current: server.url,
      logins: { [server.url]: storedLogin },
      contexts: {},
    })
  }
  const readStoredLogin = () => JSON.parse(readFileSync(home.credentials, 'utf8')).logins[server.url]

  test('that cannot be renewed for a moment does not end a tail', async () => {
    const unavailable = () => new Response('', { status: 503 })
    const renew = () => grant({ id_token: idToken({ jti: crypto.randomUUID() }) })
    const tokenResponses = [renew, unavailable, unavailable, renew]
    tokenEndpoint = () => tokenResponses.shift()?.() ?? oauthError('invalid_grant')
    const expire = () =>
      new Response('event: end\ndata: {"reason":"token_expired"}\n\n', {
        headers: { 'content-type': 'text/event-stream' },
      })
    const refuse = () => Response.json({ error: { code: 'UNAUTHENTICATED', message: '' } }, { status: 401 })
    const streams = [expire, refuse, refuse, refuse, expire]
    void server.stop()
    server = createScriptedServer(({ path }) =>
      path.startsWith('/v1/logs/stream')
        ? (streams.shift() ?? refuse)()
        : Response.json({ data: [], pagination: { limit: 50, nextCursor: null } }),
    )
    storeLogin()
    const result = await home.otpd(['logs', '--tail'])
    expect(result.stderr).toContain('── the connection was lost, retrying ──')
    expect(result.stderr).toMatch(/── reconnected after .*, no events missed ──/)
    expect([tokenResponses.length, streams.length, result.exitCode]).toEqual([0, 0, 4])
  })

  test('is renewed there, and keeps its refresh token unless it gets a new one', async () => {
    const renewed = idToken({ jti: 'new' })
    tokenEndpoint = () => grant({ id_token: renewed })
    expect(await home.otpd(['auth', 'token'])).toMatchObject({ exitCode: 0, stdout: `${renewed}\n` })
    expect(readStoredLogin()).toMatchObject({ idToken: renewed, refreshToken: 'refresh-1' })
    expect(server.requests).toEqual([])
  })

  test('is not renewed for a different user', async () => {
    tokenEndpoint = () => grant({ id_token: idToken({ sub: 'eve' }) })
    expect(await home.otpd(['auth', 'token'])).toMatchObject({ exitCode: 1, stdout: '' })
    expect(readStoredLogin().refreshToken).toBe('refresh-1')
  })

  test('without a new ID token has ended', async () => {
    tokenEndpoint = () => grant()
    const result = await home.otpd(['project', 'list'])
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain('has ended')
    expect(result.stderr).toContain('otpd login')
  })
})

describe('the browser', () => {
  test('is $BROWSER, else the default of the desktop', () => {
    expect(openBrowser('http://127.0.0.1', { BROWSER: '/bin/true' }, 'linux')).toBe(true)
    expect(openBrowser('http://127.0.0.1', { BROWSER: '/nowhere' }, 'linux')).toBe(false)
    expect(openBrowser('http://127.0.0.1', {}, 'linux')).toBe(false)
  })
})
