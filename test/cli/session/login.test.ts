import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createHome, createScriptedServer, errorResponse, type RecordedRequest } from '../cli-fixture.ts'

let home: ReturnType<typeof createHome>
let server: ReturnType<typeof createScriptedServer>
let kind: string
let setupTokenAwaited: boolean
let grant: (form: URLSearchParams) => Response

const tokenResponse = () =>
  Response.json({ id_token: 'id-1', refresh_token: 'refresh-1', token_type: 'Bearer', expires_in: 900 })

beforeEach(() => {
  home = createHome()
  kind = 'built_in'
  setupTokenAwaited = false
  grant = tokenResponse
  server = createScriptedServer(({ path, body, headers }: RecordedRequest) => {
    if (path === '/v1/auth/config')
      return Response.json({
        data: { kind, issuer: 'https://id.example.com', clientId: 'cli', setupTokenAwaited },
      })
    if (path === '/v1/auth/token') return grant(new URLSearchParams(body))
    if (path === '/v1/auth/revoke') return new Response(null, { status: 200 })
    return headers.get('authorization') === 'Bearer good'
      ? Response.json({ data: {} })
      : errorResponse(401, 'UNAUTHENTICATED', 'The token is not valid.')
  })
})

afterEach(() => {
  home.remove()
  void server.stop()
})

const login = (args: string[], runOptions: Parameters<typeof home.otpd>[1] = {}) =>
  home.otpd(['login', '--server', server.url, ...args], runOptions)

const readProfile = () => JSON.parse(readFileSync(home.credentials, 'utf8'))
const form = () => Object.fromEntries(new URLSearchParams(server.requests.at(-1)?.body ?? ''))

describe('login', () => {
  test('with --password-stdin takes the password without its final newline', async () => {
    const result = await login(['--email', 'ada@example.com', '--password-stdin'], {
      input: ' correct horse battery \n',
    })
    expect(result).toMatchObject({ exitCode: 0, stdout: '' })
    expect(form()).toEqual({
      grant_type: 'password',
      username: 'ada@example.com',
      password: ' correct horse battery ',
    })
    expect(readProfile().logins[server.url]).toEqual({
      email: 'ada@example.com',
      idToken: 'id-1',
      idTokenExpiresAt: '2026-11-20T12:15:00.000Z',
      refreshToken: 'refresh-1',
    })
  })

  test('keeps the address of the account, not as it was typed', async () => {
    const claims = Buffer.from(JSON.stringify({ email: 'ada@example.com' })).toString('base64url')
    grant = () => Response.json({ id_token: `e30.${claims}.c2ln`, token_type: 'Bearer', expires_in: 900 })
    const args = ['--email', ' Ada@Example.com', '--password-stdin']
    const result = await login(args, { input: 'correct horse battery' })
    expect(result.stderr).toContain(`✓ Logged in to ${server.url} as ada@example.com\n`)
    expect(readProfile().logins[server.url]).toMatchObject({ email: 'ada@example.com' })
  })

  test('makes its server the default of later commands', async () => {
    await login(['--email', 'ada@example.com', '--password-stdin'], { input: 'correct horse battery' })
    expect((await home.otpd(['auth', 'token'])).stdout).toBe('id-1\n')
  })

  test('prompts on a terminal for missing values only', async () => {
    await login([], { answers: ['ada@example.com', 'correct horse battery'] })
    expect(form()).toMatchObject({ username: 'ada@example.com', password: 'correct horse battery' })
    const result = await login(['--email', 'ada@example.com'], { answers: ['correct horse battery'] })
    expect(result.questions).toEqual(['Password: '])
  })

  describe('with a second factor', () => {
    const requireTotp = () => {
      grant = (sent) =>
        sent.get('totp') === '123456'
          ? tokenResponse()
          : Response.json({ error: 'mfa_required', error_description: 'Send totp.' }, { status: 400 })
    }

    test('prompts for the code on a terminal', async () => {
      requireTotp()
      const result = await login([], { answers: ['ada@example.com', 'correct horse battery', '123456'] })
      expect(result).toMatchObject({ exitCode: 0 })
      expect(result.questions.at(-1)).toBe('Code (the code of your authenticator app, or a recovery code): ')
      expect(form()).toMatchObject({ password: 'correct horse battery', totp: '123456' })
    })

    test('prompts again for a wrong code, and keeps the password', async () => {
      requireTotp()
      const required = grant
      const wrong = Response.json({ error: 'invalid_grant', error_description: 'Wrong.' }, { status: 400 })
      grant = (sent) => (sent.get('totp') === '000000' ? wrong : required(sent))
      const answers = ['ada@example.com', 'correct horse battery', '000000', '123456']
      const result = await login([], { answers })
      expect(result).toMatchObject({ exitCode: 0 })
      expect(result.questions.slice(2)).toEqual(Array(2).fill(result.questions[2]))
      expect(result.stderr).toContain(
        'That code is wrong or was used. Enter the next one, or a recovery code.\n',
      )
      expect(form()).toMatchObject({ password: 'correct horse battery', totp: '123456' })
    })

    test('that is wrong in a script names the command for a lost device', async () => {
      grant = () => Response.json({ error: 'invalid_grant', error_description: 'Wrong.' }, { status: 400 })
      const args = ['--email', 'ada@example.com', '--password-stdin', '--totp', '000000']
      const refused = await login(args, { input: 'correct horse battery' })
      expect(refused).toMatchObject({ exitCode: 4, questions: [] })
      expect(refused.stderr).toContain(
        "Lost the device? On the server's machine: otpd admin reset-totp EMAIL",
      )
    })

    test('names the flag without a terminal, and takes the code from it', async () => {
      requireTotp()
      const input = 'correct horse battery'
      const refused = await login(['--email', 'ada@example.com', '--password-stdin'], { input })
      expect(refused.exitCode).not.toBe(0)
      expect(refused.stderr).toContain('Pass --totp CODE.')
      const args = ['--email', 'ada@example.com', '--password-stdin', '--totp', '123456']
      expect(await login(args, { input })).toMatchObject({ exitCode: 0 })
    })
  })

  test('with a setup token creates an account and prompts for the password twice', async () => {
    const typedAnswers = ['ada@example.com', 'Ada', 'correct horse battery', 'correct horse battery']
    const result = await login(['--setup-token', 'st_1'], { answers: typedAnswers })
    expect(result.questions).toEqual([
      'Email: ',
      'Name (ada): ',
      'Password (12 characters or more): ',
      'Confirm password: ',
    ])
    expect(result.stderr).toContain('Account created')
    expect(result.stderr).toContain('Next: otpd project create')
    expect(form()).toEqual({
      grant_type: 'urn:otpd:setup-token',
      setup_token: 'st_1',
      email: 'ada@example.com',
      password: 'correct horse battery',
      name: 'Ada',
    })
  })

  test('with a setup token prompts again for a password that is too short', async () => {
    const typedAnswers = ['ada@example.com', 'Ada', 'short', 'correct horse battery', 'correct horse battery']
    const result = await login(['--setup-token', 'st_1'], { answers: typedAnswers })
    expect(result).toMatchObject({ exitCode: 0 })
    expect(result.stderr).toContain('Too short: use 12 characters or more.')
    expect(form()).toMatchObject({ password: 'correct horse battery' })
  })

  test('prompts again for an invalid e-mail address', async () => {
    const result = await login([], { answers: ['ada', 'ada@example.com', 'correct horse battery'] })
    expect(result.questions).toEqual(['Email: ', 'Email: ', 'Password: '])
    expect(result.stderr).toContain('That is not an e-mail address.')
    expect(form()).toMatchObject({ username: 'ada@example.com' })
  })

  test('prompts for the setup token when there is no account yet', async () => {
    setupTokenAwaited = true
    const typedAnswers = ['st_1', 'ada@example.com', '', 'correct horse battery', 'correct horse battery']
    const result = await login([], { answers: typedAnswers })
    expect(result.questions[0]).toBe('Setup token: ')
    expect(form()).toMatchObject({ grant_type: 'urn:otpd:setup-token', setup_token: 'st_1', name: 'ada' })
    const script = await login(['--email', 'ada@example.com', '--password-stdin'], { input: 'x' })
    expect(script.exitCode).toBe(2)
    expect(script.stderr).toContain('--setup-token')
  })

  test('with a setup token works in a script', async () => {
    const args = ['--setup-token', 'st_1', '--email', 'ada@example.com', '--password-stdin']
    expect((await login(args, { input: 'correct horse battery\n' })).exitCode).toBe(0)
    expect(form()).not.toHaveProperty('name')
  })

  test('prompts for both passwords again when they differ', async () => {
    const passwords = [
      'correct horse battery',
      'another horse battery',
      ...Array(2).fill('third horse battery'),
    ]
    const result = await login(['--setup-token', 'st_1'], {
      answers: ['ada@example.com', 'Ada', ...passwords],
    })
    expect(result.exitCode).toBe(0)
    expect(result.stderr).toContain('The passwords do not match. Type both again.')
    expect(form()).toMatchObject({ password: 'third horse battery' })
  })

  test('prompts for another password when the server refuses it, and keeps the other answers', async () => {
    const message = 'This is a common password, which attackers try first.'
    const error = {
      error: 'invalid_request',
      error_description: `password: ${message}`,
      details: [{ in: 'body', path: 'password', code: 'INVALID', message }],
    }
    grant = (sent) =>
      sent.get('password') === 'password12345' ? Response.json(error, { status: 400 }) : tokenResponse()
    const passwords = ['password12345', 'password12345', 'correct horse battery', 'correct horse battery']
    const args = ['--setup-token', 'st_1']
    const result = await login(args, { answers: ['ada@example.com', 'Ada', ...passwords] })
    expect(result.exitCode).toBe(0)
    expect(result.stderr).toContain('This is a common password, which attackers try first.\n')
    expect(form()).toMatchObject({ email: 'ada@example.com', name: 'Ada', password: 'correct horse battery' })
    const script = ['--email', 'ada@example.com', '--password-stdin']
    const refused = await login([...args, ...script], { input: 'password12345' })
    expect(refused).toMatchObject({ exitCode: 6, questions: [] })
  })

  test('refuses a bad setup token before any question, and reads a good one from a file', async () => {
    const oauth = (error: string) => Response.json({ error, error_description: 'No.' }, { status: 400 })
    const accepted = grant
    grant = () => oauth('invalid_grant')
    const refused = await login(['--setup-token', 'st_1'], { answers: [] })
    expect(refused).toMatchObject({ exitCode: 4, questions: [] })
    await Bun.write(join(home.directory, 'token'), 'st_2\n')
    grant = (sent) => (sent.get('email') === '-' ? oauth('invalid_request') : accepted(sent))
    const answers = ['ada@example.com', 'Ada', 'correct horse battery', 'correct horse battery']
    expect((await login(['--setup-token-file', 'token'], { answers })).exitCode).toBe(0)
    expect(form()).toMatchObject({ setup_token: 'st_2', email: 'ada@example.com' })
    expect((await login(['--setup-token-file', 'none'])).exitCode).toBe(2)
  })

  test('says that it cannot be stored before it begins', async () => {
    const file = join(home.directory, 'file')
    await Bun.write(file, '')
    const args = ['--email', 'ada@example.com', '--password-stdin']
    const input = 'correct horse battery'
    const refused = await login(args, { input, env: { OTPD_CONFIG_DIR: file } })
    expect(refused).toMatchObject({ exitCode: 4, stdout: '' })
    expect(refused.stderr).toStartWith(
      `Error: Cannot write to ${file} (it exists and is no folder, EEXIST).\n`,
    )
    expect(refused.stderr).toContain('OTPD_CONFIG_DIR=DIR')
    const whoami = await home.otpd(['whoami'], { env: { OTPD_CONFIG_DIR: file } })
    expect(whoami.stderr).toStartWith('Error: Not logged in to ')
    mkdirSync(dirname(home.credentials), { recursive: true })
    writeFileSync(home.credentials, 'no JSON', { mode: 0o600 })
    expect(await login(args, { input })).toMatchObject({ exitCode: 2 })
    expect(server.requests).toEqual([])
  })

  test('stores nothing when the user gives up', async () => {
    expect((await login([], { answers: ['ada@example.com', null] })).exitCode).toBe(130)
    expect(existsSync(home.credentials)).toBe(false)
  })

  test('without a terminal names the flag that is missing', async () => {
    const result = await login(['--password-stdin'], { input: 'correct horse battery' })
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('--email')
    expect((await login(['--email', 'a@b.c', '--no-input'])).stderr).toContain('--password-stdin')
  })

  test('with the wrong password is 4 and stores nothing', async () => {
    grant = () =>
      Response.json(
        { error: 'invalid_grant', error_description: 'E-mail or password is wrong.' },
        { status: 400 },
      )
    const result = await login(['--email', 'ada@example.com', '--password-stdin'], { input: 'x' })
    expect(result).toMatchObject({ exitCode: 4, stdout: '' })
    expect(result.stderr).toContain('E-mail or password is wrong.')
    expect(result.stderr).toContain('otpd admin reset-password EMAIL')
    const setup = await login(['--setup-token', 'st_1', '--email', 'a@b.c', '--password-stdin'], {
      input: 'x',
    })
    expect(setup.stderr).toContain('otpd admin setup-token')
    expect(existsSync(home.credentials)).toBe(false)
  })

  test('with --token-stdin stores only a token that the server accepts', async () => {
    expect(await login(['--token-stdin'], { input: 'bad\n' })).toMatchObject({ exitCode: 4 })
    expect(existsSync(home.credentials)).toBe(false)
    expect(await login(['--token-stdin'], { input: 'good\n' })).toMatchObject({ exitCode: 0 })
    expect(readProfile().logins[server.url]).toMatchObject({ idToken: 'good', refreshToken: null })
  })

  test('at a provider rejects password flags, and without a terminal says what works', async () => {
    kind = 'oidc'
    const result = await login(['--email', 'ada@example.com'])
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(result.stderr).toContain('log in at https://id.example.com')
    const script = await login([], { input: '' })
    expect(script).toMatchObject({ exitCode: 2, stdout: '' })
    expect(script.stderr).toContain('--device')
    expect(script.stderr).toContain('--token-stdin')
  })

  test('with --device requires a server with an OpenID provider', async () => {
    const result = await login(['--device'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('otpd login')
  })
})

describe('logout', () => {
  test('forgets this server only, and revokes the session there', async () => {
    await login(['--token-stdin'], { input: 'good' })
    await login(['--email', 'ada@example.com', '--password-stdin'], { input: 'correct horse battery' })
    const storedLogins = {
      ...readProfile(),
      logins: { ...readProfile().logins, 'https://other.example': readProfile().logins[server.url] },
    }
    await Bun.write(home.credentials, JSON.stringify(storedLogins))
    expect((await home.otpd(['logout'])).exitCode).toBe(0)
    expect(server.requests.at(-1)).toMatchObject({ method: 'POST', path: '/v1/auth/revoke' })
    expect(form()).toEqual({ token: 'refresh-1' })
    expect(Object.keys(readProfile().logins)).toEqual(['https://other.example'])
    expect(readProfile().current).toBeNull()
  })

  test('works without the server, and warns that the session was not ended there', async () => {
    await login(['--email', 'ada@example.com', '--password-stdin'], { input: 'correct horse battery' })
    await server.stop()
    const result = await home.otpd(['logout'])
    expect(result.exitCode).toBe(0)
    expect(result.stderr).toContain('could not be ended at the server')
    expect(readProfile().logins).toEqual({})
  })
})
