import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, collectOutput, startServer, type RunningServer } from '../helpers/binary.ts'
import { runCommand } from '../helpers/run-command.ts'
import { startOidcProvider } from '../helpers/oidc.ts'
import { createLoginBrowser } from '../helpers/login-browser.ts'
import { runInTerminal } from '../helpers/terminal.ts'

// `otpd login` of the compiled binary at a certified OpenID provider; the test drives the browser.

let provider: Awaited<ReturnType<typeof startOidcProvider>>
let server: RunningServer
let home: string

beforeAll(async () => {
  provider = await startOidcProvider()
  server = await startServer({ env: oidc(provider.clientId) })
})

afterAll(async () => {
  await server.stop()
  provider.stop()
})

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'otpd-oidc-'))
})

afterEach(() => rmSync(home, { recursive: true }))

/** Returns the settings of a server whose developers log in at the provider. */
const oidc = (audience: string) => ({
  OTPD_OIDC_ISSUER: provider.issuer,
  OTPD_OIDC_AUDIENCE: audience,
  OTPD_OIDC_CLIENT_ID: provider.clientId,
  OTPD_SIGNUP: 'open',
})

const credentials = () => join(home, '.config/otpd/credentials.json')
const readStoredLogin = () => JSON.parse(readFileSync(credentials(), 'utf8')).logins[server.url]
const keep = (login: object) =>
  writeFileSync(
    credentials(),
    JSON.stringify({ version: 1, current: server.url, logins: { [server.url]: login } }),
  )

const otpd = (...args: string[]) => runCommand(home, args, { env: { OTPD_SERVER: server.url } })
const loginOnTerminal = (at = server, env: Record<string, string> = {}) =>
  runInTerminal(home, ['login', '--server', at.url], { env })

const readLoginUrl = async (run: ReturnType<typeof loginOnTerminal>) => {
  const [, url = ''] = await run.waitFor(/^ {2}(http\S+)$/m)
  await run.waitFor(/Ctrl\+C/)
  return url
}

async function logIn(person: string) {
  const run = loginOnTerminal()
  await createLoginBrowser().logIn(await readLoginUrl(run), person)
  expect(await run.waitForExit()).toBe(0)
}

/** Starts `otpd login --device` without a terminal, and waits for the code that it shows. */
async function beginOnDevice() {
  const child = Bun.spawn([binaryPath, 'login', '--device'], {
    env: { PATH: process.env.PATH ?? '', HOME: home, OTPD_SERVER: server.url },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const stderrOutput = collectOutput(child.stderr)
  await stderrOutput.waitFor('Ctrl+C')
  return { child, stderrOutput, userCode: /^Enter +(\S+)$/m.exec(stderrOutput.text())?.[1] ?? '' }
}

describe('a server whose developers log in at the provider', () => {
  const issuer = () => ({ OTPD_OIDC_ISSUER: provider.issuer, OTPD_OIDC_AUDIENCE: provider.clientId })
  const ready = async (env: Record<string, string>) => {
    const started = await startServer({ home, env: { ...issuer(), ...env } })
    await started.waitForLog('there is no account yet; ')
    return started
  }

  test('says how the first one begins, until there is one', async () => {
    const open = await ready({ OTPD_SIGNUP: 'open' })
    const login = `"command":"otpd login --server ${open.url}","issuer":"${provider.issuer}"`
    expect(open.log()).toContain(`anyone who can log in at the OpenID provider gets one",${login}`)
    await open.stop()
    const closed = await ready({})
    expect(closed.log()).toContain('"command":"otpd admin create"')
    const admin = (args: string[], env = {}) =>
      runCommand(home, ['admin', ...args, '--data-dir', closed.dataDir], {
        env,
        input: 'correct horse battery',
      })
    // An account with a password could not log in.
    for (const args of [['create', '--email', 'eve@example.test', '--password-stdin'], ['setup-token']])
      expect(await admin(args)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(provider.issuer),
      })
    const created = await admin(['create', '--email', 'ada@example.test'], issuer())
    expect([created.exitCode, created.stderr]).toEqual([0, expect.stringContaining('Next: otpd login')])
    expect(await admin(['reset-password', 'ada@example.test'], issuer())).toMatchObject({
      exitCode: 6,
      stderr: expect.stringContaining('which has the passwords'),
    })
    await closed.stop()
    const again = await startServer({ home, env: issuer() })
    await again.stop()
    expect(again.log()).not.toContain('no account yet')
  })
})

describe('a login in the browser', () => {
  test('opens the browser, waits for the callback, and stores a renewable login', async () => {
    const browser = join(home, 'browser')
    writeFileSync(browser, `#!/bin/sh\necho "$1" > ${home}/opened\n`)
    chmodSync(browser, 0o700)
    const run = loginOnTerminal(server, { BROWSER: browser })
    const url = await readLoginUrl(run)
    expect(run.text()).toContain('Opening your browser to log in.')
    const authorizationParams = new URL(url).searchParams
    expect(Object.fromEntries(authorizationParams)).toMatchObject({
      client_id: provider.clientId,
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
      nonce: expect.stringMatching(/^.{40,}$/),
      state: expect.stringMatching(/^.{40,}$/),
    })

    const { response } = await createLoginBrowser().logIn(url, 'ada')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-security-policy')).toStartWith("default-src 'none'")
    expect(await response.text()).toContain('You are logged in.')
    expect(await run.waitForExit()).toBe(0)
    expect(run.text()).toContain(`✓ Logged in to ${server.url} as ada@example.test`)
    expect(readFileSync(`${home}/opened`, 'utf8')).toBe(`${url}\n`)

    expect(statSync(credentials()).mode & 0o777).toBe(0o600)
    expect(readStoredLogin()).toMatchObject({
      email: 'ada@example.test',
      refreshToken: expect.any(String),
      provider: { issuer: provider.issuer, clientId: provider.clientId },
    })
    expect(await otpd('whoami')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^ada@example\.test\n/),
    })
    expect(await otpd('project', 'create', 'shop')).toMatchObject({ exitCode: 0 })
  })

  test('is not ended by a request without its state, nor ended twice', async () => {
    const run = loginOnTerminal()
    const url = await readLoginUrl(run)
    expect(run.text()).toContain('Open this page to log in')
    const callback = new URL(url).searchParams.get('redirect_uri') ?? ''
    expect((await fetch(`${callback}?code=stolen&state=guessed`)).status).toBe(400)
    expect((await fetch(new URL('/favicon.ico', callback))).status).toBe(404)
    await createLoginBrowser().logIn(url, 'ada')
    expect(await run.waitForExit()).toBe(0)
    await expect(fetch(callback)).rejects.toThrow()
  })

  test('that the user denies is 4, says so in browser and terminal, and stores nothing', async () => {
    const run = loginOnTerminal()
    const { response } = await createLoginBrowser().logIn(await readLoginUrl(run), 'ada', { refuses: true })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('The terminal says why.')
    expect(await run.waitForExit()).toBe(4)
    expect(run.text()).toContain(`Error: ${provider.issuer} refused: End-User aborted interaction.`)
    expect(existsSync(credentials())).toBe(false)
  })

  test('ends with Ctrl-C, and stops listening', async () => {
    const run = loginOnTerminal()
    const callback = new URL(await readLoginUrl(run)).searchParams.get('redirect_uri') ?? ''
    run.type('\u0003')
    expect(await run.waitForExit()).toBe(130)
    expect(run.text()).toContain('Canceled; nothing was changed.')
    expect(existsSync(credentials())).toBe(false)
    await expect(fetch(callback)).rejects.toThrow()
  })

  test('does not start without a terminal', async () => {
    const result = await otpd('login')
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain('otpd login --device')
  })

  test.each([
    ['for another audience names the setting', { audience: 'another' }, 'OTPD_OIDC_AUDIENCE'],
    [
      'of a user who is not admitted names the command that admits them',
      { signup: 'closed' },
      'otpd admin create',
    ],
  ])(
    '%s, and stores nothing',
    async (_, { audience, signup }: { audience?: string; signup?: string }, hint) => {
      const strict = await startServer({
        env: { ...oidc(audience ?? provider.clientId), ...(signup && { OTPD_SIGNUP: signup }) },
      })
      const run = loginOnTerminal(strict)
      const { response } = await createLoginBrowser().logIn(await readLoginUrl(run), 'eve')
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('The login failed.'),
      ])
      expect(await run.waitForExit()).toBe(4)
      expect(run.text()).toContain(`The token came from ${provider.issuer}, for its client otpd-cli.`)
      expect(run.text()).toContain(hint)
      if (signup === 'closed') {
        await strict.waitForLog('otpd admin create --email ADDRESS')
        expect(strict.log()).toMatch(/otpd admin create --email ADDRESS.*OTPD_SIGNUP=open/)
      }
      expect(existsSync(credentials())).toBe(false)
      await strict.stop()
    },
  )
})

test('an account that the operator creates logs in at the provider, without its address', async () => {
  const args = ['admin', 'create', '--email', 'new@example.test', '--data-dir', server.dataDir]
  const created = await runCommand(home, args, { env: oidc(provider.clientId) })
  expect(created).toMatchObject({ exitCode: 0, stderr: `Next: otpd login --server ${server.url}\n` })
})

describe('a login on another device', () => {
  test('shows the page and the code to enter, and needs no terminal', async () => {
    const { child, stderrOutput, userCode } = await beginOnDevice()
    expect(stderrOutput.text()).toContain(`Open   ${provider.issuer}/device   on any device`)
    await provider.approveDevice(userCode, { subject: 'bob' })
    expect(await child.exited).toBe(0)
    expect(readStoredLogin()).toMatchObject({ email: 'bob@example.test', refreshToken: expect.any(String) })
    expect((await otpd('whoami')).stdout).toStartWith('bob@example.test\n')
  })

  test('that is denied there is 4', async () => {
    const { child, stderrOutput, userCode } = await beginOnDevice()
    await provider.refuseDevice(userCode)
    expect(await child.exited).toBe(4)
    await stderrOutput.waitFor(`Error: ${provider.issuer} refused`)
    expect(existsSync(credentials())).toBe(false)
  })
})

describe('a session', () => {
  beforeEach(() => logIn('ada'))

  test('is renewed silently at the provider, once for concurrent commands', async () => {
    const before = readStoredLogin()
    const old = `${before.idToken}old`
    keep({ ...before, idToken: old, idTokenExpiresAt: '2020-01-01T00:00:00.000Z' })
    const result = await Promise.all([1, 2, 3].map(() => otpd('auth', 'token')))
    expect(result.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
      result.map(() => ({ exitCode: 0, stderr: '' })),
    )
    expect(new Set(result.map(({ stdout }) => stdout)).size).toBe(1)
    expect(readStoredLogin().idToken).not.toBe(old)
    expect(readStoredLogin().provider).toEqual(before.provider)
    expect((await otpd('whoami')).exitCode).toBe(0)
  })

  test('that has ended at the provider says so, and how to log in again', async () => {
    keep({ ...readStoredLogin(), idTokenExpiresAt: '2020-01-01T00:00:00.000Z', refreshToken: 'gone' })
    const result = await otpd('project', 'list')
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain(`Error: The session at ${server.url} has ended.`)
    expect(result.stderr).toContain(`otpd login --server ${server.url}`)
  })

  test('that cannot be renewed because the provider is unreachable is 3, and is kept', async () => {
    const before = { ...readStoredLogin(), idTokenExpiresAt: '2020-01-01T00:00:00.000Z' }
    keep({ ...before, provider: { ...before.provider, issuer: 'http://127.0.0.1:1' } })
    const result = await otpd('project', 'list')
    expect(result).toMatchObject({ exitCode: 3, stdout: '' })
    expect(result.stderr).toContain('Error: Cannot reach http://127.0.0.1:1')
    expect(readStoredLogin().refreshToken).toBe(before.refreshToken)
  })

  test('ends at the provider too with logout', async () => {
    const { refreshToken } = readStoredLogin()
    expect(await otpd('logout')).toMatchObject({
      exitCode: 0,
      stderr: `✓ Logged out of ${server.url}\n`,
    })
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: provider.clientId }
    const refreshResponse = await fetch(`${provider.issuer}/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    })
    expect(await refreshResponse.json()).toMatchObject({ error: 'invalid_grant' })
  })
})
