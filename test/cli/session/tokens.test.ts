import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeStoredLogins, type Login } from '../../../cli/session/credentials-file.ts'
import { createHome, createScriptedServer, errorResponse, type RequestHandler } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>
let server: ReturnType<typeof createScriptedServer>
let handler: RequestHandler

beforeEach(() => {
  home = createHome()
  server = createScriptedServer((recordedRequest) => handler(recordedRequest))
})

afterEach(() => {
  home.remove()
  void server.stop()
})

const login = (overrides: Partial<Login> = {}): Login => ({
  email: 'ada@example.com',
  idToken: 'old',
  idTokenExpiresAt: '2026-11-20T12:10:00.000Z',
  refreshToken: 'refresh-1',
  ...overrides,
})

const storeLogin = (overrides: Partial<Login> = {}) =>
  writeStoredLogins(home.credentials, {
    current: server.url,
    logins: { [server.url]: login(overrides) },
    contexts: {},
  })

const grant = (idToken: string, refreshToken: string) =>
  Response.json({ id_token: idToken, refresh_token: refreshToken, token_type: 'Bearer', expires_in: 900 })

const readStoredLogin = () => JSON.parse(readFileSync(home.credentials, 'utf8')).logins[server.url]

describe('the credentials file', () => {
  test('is 0600 in a directory of 0700', () => {
    storeLogin()
    expect(statSync(home.credentials).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(home.credentials)).mode & 0o777).toBe(0o700)
  })

  for (const mode of [0o640, 0o604, 0o660])
    test(`is rejected with mode ${mode.toString(8)}`, async () => {
      storeLogin()
      chmodSync(home.credentials, mode)
      const result = await home.otpd(['auth', 'token'])
      expect(result).toMatchObject({ exitCode: 4, stdout: '' })
      expect(result.stderr).toContain(`mode ${mode.toString(8)}`)
      expect(result.stderr).toContain('chmod go=')
    })

  test('with invalid content is rejected with a remedy', async () => {
    storeLogin()
    await Bun.write(home.credentials, '{"version": 7}')
    const result = await home.otpd(['auth', 'token'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('otpd login')
  })

  test('is in the directory that OTPD_CONFIG_DIR names', async () => {
    handler = () => Response.json({ data: {} })
    const env = { OTPD_CONFIG_DIR: `${home.directory}/elsewhere`, OTPD_SERVER: server.url }
    await home.otpd(['login', '--token-stdin'], { env, input: 'token\n' })
    expect(existsSync(`${home.directory}/elsewhere/credentials.json`)).toBe(true)
    expect(existsSync(home.credentials)).toBe(false)
  })
})

describe('a token', () => {
  test('that is still valid is printed without a call to the server', async () => {
    storeLogin()
    expect(await home.otpd(['auth', 'token'])).toMatchObject({ exitCode: 0, stdout: 'old\n', stderr: '' })
    expect(server.requests).toEqual([])
  })

  test('that is about to expire is renewed, and the new one is stored', async () => {
    storeLogin({ idTokenExpiresAt: '2026-11-20T12:00:20.000Z' })
    handler = () => grant('new', 'refresh-2')
    expect(await home.otpd(['auth', 'token'])).toMatchObject({ exitCode: 0, stdout: 'new\n' })
    expect(server.requests[0]?.body).toBe('grant_type=refresh_token&refresh_token=refresh-1')
    expect(readStoredLogin()).toEqual({
      email: 'ada@example.com',
      idToken: 'new',
      idTokenExpiresAt: '2026-11-20T12:15:00.000Z',
      refreshToken: 'refresh-2',
    })
  })

  test('is renewed only once by concurrent commands', async () => {
    storeLogin({ idTokenExpiresAt: '2026-11-20T11:00:00.000Z' })
    handler = () => grant('new', 'refresh-2')
    const all = await Promise.all(Array.from({ length: 8 }, () => home.otpd(['auth', 'token'])))
    expect(all.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 8 }, () => 'new\n'))
    expect(server.requests).toHaveLength(1)
  })

  test('that the server rejects is renewed, and the call is retried once', async () => {
    storeLogin()
    handler = ({ path, headers }) => {
      if (path === '/v1/auth/token') return grant('new', 'refresh-2')
      return headers.get('authorization') === 'Bearer new'
        ? Response.json({ data: [], pagination: { limit: 50, nextCursor: null } })
        : errorResponse(401, 'UNAUTHENTICATED', 'The token has expired.')
    }
    expect((await home.otpd(['project', 'list'])).exitCode).toBe(0)
    expect(server.requests.map(({ path }) => path)).toEqual([
      '/v1/projects',
      '/v1/auth/token',
      '/v1/projects',
    ])
  })

  test('whose session has ended says so, and how to log in again', async () => {
    storeLogin({ idTokenExpiresAt: '2026-11-20T11:00:00.000Z' })
    handler = () => Response.json({ error: 'invalid_grant', error_description: 'No.' }, { status: 400 })
    const result = await home.otpd(['project', 'list'])
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain('~/.config/otpd/credentials.json')
    expect(result.stderr).toContain(`otpd login --server ${server.url}`)
  })

  test('has ended too when the server has switched to another provider', async () => {
    storeLogin({ idTokenExpiresAt: '2026-11-20T11:00:00.000Z' })
    handler = () => errorResponse(404, 'NOT_FOUND', 'There is no such route.')
    const result = await home.otpd(['project', 'list'])
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain('has ended')
  })

  test('of another origin is never sent', async () => {
    storeLogin()
    const other = createScriptedServer(() => Response.json({ data: [] }))
    const result = await home.otpd(['project', 'list', '--server', other.url])
    expect(result.exitCode).toBe(4)
    expect(result.stderr).toContain(`You are logged in to ${server.url}`)
    expect(other.requests).toEqual([])
    void other.stop()
  })

  test('does not follow a redirect', async () => {
    storeLogin()
    const other = createScriptedServer(() => Response.json({ data: [] }))
    handler = () => Response.redirect(`${other.url}/v1/projects`, 307)
    const result = await home.otpd(['project', 'list'])
    expect(result.exitCode).toBe(3)
    expect(result.stderr).toContain(other.url)
    expect(other.requests).toEqual([])
    void other.stop()
  })

  test('from OTPD_TOKEN takes precedence over the file, and errors name it', async () => {
    storeLogin()
    handler = () => errorResponse(401, 'UNAUTHENTICATED', 'The token is not valid.')
    const result = await home.otpd(['project', 'list'], { env: { OTPD_TOKEN: 'mine' } })
    expect(server.requests.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer mine'])
    expect(result.exitCode).toBe(4)
    expect(result.stderr).toContain('OTPD_TOKEN')
  })
})
