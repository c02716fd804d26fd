import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writeProfile } from '../../cli/profile.ts'
import { createHome, createScriptedServer, refusal, type Answering } from './harness.ts'

let home: ReturnType<typeof createHome>
let server: ReturnType<typeof createScriptedServer>
let answering: Answering

beforeEach(() => {
  home = createHome()
  server = createScriptedServer((asked) => answering(asked))
  const login = { email: null, idToken: 'token', idTokenExpiresAt: null, refreshToken: null }
  writeProfile(home.credentials, { current: server.url, logins: { [server.url]: login } })
})

afterEach(() => {
  home.remove()
  void server.stop()
})

const list = (...data: unknown[]) => Response.json({ data, pagination: { limit: 50, nextCursor: null } })

const project = (over: Record<string, unknown> = {}) => ({
  id: 'prj_01arz3ndektsv4rrffq69g5fav',
  name: 'storefront',
  description: null,
  applicationCount: 0,
  createdAt: '2026-11-20T11:00:00.000Z',
  updatedAt: '2026-11-20T11:00:00.000Z',
  ...over,
})

const application = {
  id: 'app_01arz3ndektsv4rrffq69g5fav',
  name: 'web',
  clientId: 'ph_test_client_c',
  status: 'active',
  environment: 'test',
  clientSecret: 'ph_test_secret_s',
  apiKey: 'ph_test_api_a',
  webhookSecret: 'whsec_w',
  warning: 'Store them now.',
}

describe('output', () => {
  test('with --json is the body of the API, byte for byte', async () => {
    const body = '{"data":[ {"id":"prj_1","name":"a\\u0062"} ],"pagination":{"limit":50,"nextCursor":null}}'
    answering = () => new Response(body)
    expect(await home.otpd(['project', 'list', '--json'])).toMatchObject({ stdout: `${body}\n`, stderr: '' })
  })

  test('with --json is the error of the API on stderr, and nothing on stdout', async () => {
    answering = () => refusal(403, 'PLAN_LIMIT_REACHED', 'The plan allows 10 projects.')
    const ran = await home.otpd(['project', 'create', 'x', '--json'])
    expect(ran).toMatchObject({ exitCode: 6, stdout: '' })
    expect(JSON.parse(ran.stderr).error.traceId).toBe('req_1')
  })

  test('with --json is an error object where no server was asked', async () => {
    const ran = await home.otpd(['project', 'craete', '--json'])
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(JSON.parse(ran.stderr).error).toMatchObject({
      code: 'USAGE',
      message: "Unknown command 'craete'.",
    })
  })

  test('of an empty list says what to do, and is [] as JSON', async () => {
    answering = () => list()
    expect((await home.otpd(['project', 'list'])).stdout).toBe(
      'No projects yet. Create one: otpd project create NAME\n',
    )
    expect(JSON.parse((await home.otpd(['project', 'list', '--json'])).stdout).data).toEqual([])
  })

  test('keeps hints on stderr, and leaves them out with --quiet', async () => {
    answering = () => Response.json({ data: project() }, { status: 201 })
    const ran = await home.otpd(['project', 'create', 'storefront'])
    expect(ran.stdout).toContain('prj_01arz3ndektsv4rrffq69g5fav')
    expect(ran.stdout).not.toContain('Next:')
    expect(ran.stderr).toContain('Next: otpd app create')
    expect((await home.otpd(['project', 'create', 'storefront', '--quiet'])).stderr).toBe('')
  })

  test('never holds control characters of somebody else', async () => {
    answering = () => list(project({ name: 'a\u001b[2Jb\nc\u202ed' }))
    const { stdout } = await home.otpd(['project', 'list'])
    expect(stdout).toContain('a�[2Jb�c�d')
    answering = () => refusal(400, 'INVALID_ARGUMENT', 'bad\u001b[31m')
    expect((await home.otpd(['project', 'list'])).stderr).toContain('bad�[31m')
  })

  test('is coloured by FORCE_COLOR and never by NO_COLOR', async () => {
    answering = () => list(project())
    expect((await home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[')
    const plain = await home.otpd(['project', 'list'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b[')
    expect(
      (await home.otpd(['project', 'list', '--no-color'], { env: { FORCE_COLOR: '1' } })).stdout,
    ).not.toContain('\u001b[')
  })

  test('says that a list goes on', async () => {
    answering = () => Response.json({ data: [project()], pagination: { limit: 1, nextCursor: 'abc' } })
    const ran = await home.otpd(['project', 'list', '--limit', '1'])
    expect(server.asked[0]?.path).toBe('/v1/projects?limit=1')
    expect(ran.stderr).toContain('--cursor abc')
  })
})

describe('exit code', () => {
  const cases: [status: number, code: string, exitCode: number][] = [
    [400, 'INVALID_ARGUMENT', 6],
    [400, 'INVALID_CODE', 6],
    [401, 'UNAUTHENTICATED', 4],
    [403, 'FORBIDDEN', 4],
    [403, 'PLAN_LIMIT_REACHED', 6],
    [403, 'ENDPOINT_LIMIT_REACHED', 6],
    [403, 'DESTINATION_BLOCKED', 6],
    [404, 'NOT_FOUND', 5],
    [405, 'METHOD_NOT_ALLOWED', 6],
    [409, 'CONFLICT', 6],
    [410, 'OTP_EXPIRED', 6],
    [413, 'PAYLOAD_TOO_LARGE', 6],
    [415, 'UNSUPPORTED_MEDIA_TYPE', 6],
    [422, 'IDEMPOTENCY_KEY_REUSED', 6],
    [429, 'RATE_LIMITED', 7],
    [500, 'INTERNAL', 1],
    [502, 'DELIVERY_FAILED', 1],
    [503, 'UNAVAILABLE', 1],
  ]
  for (const [status, code, exitCode] of cases)
    test(`${exitCode} for ${status} ${code}`, async () => {
      answering = () => refusal(status, code, 'A sentence.')
      expect(await home.otpd(['api', 'GET', '/v1/x'])).toMatchObject({ exitCode, stdout: '' })
    })

  test('3 where no server answers, with what to do', async () => {
    await server.stop()
    const ran = await home.otpd(['project', 'list'])
    expect(ran).toMatchObject({ exitCode: 3, stdout: '' })
    expect(ran.stderr).toContain(`Cannot reach ${server.url} (connection refused).`)
    expect(ran.stderr).toContain('the last login')
    expect(ran.stderr).toContain('otpd serve')
  })

  test('3 where the answer takes longer than --timeout', async () => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    answering = () => promise
    const ran = await home.otpd(['project', 'list', '--timeout', '50ms'])
    resolve(new Response())
    expect(ran.exitCode).toBe(3)
    expect(ran.stderr).toContain('no answer')
  })

  test('1 for an answer that is not of otpd', async () => {
    answering = () => new Response('<html>', { status: 502 })
    const ran = await home.otpd(['project', 'list'])
    expect(ran.exitCode).toBe(1)
    expect(ran.stderr).toContain('not like otpd')
    expect(ran.stderr).not.toContain('<html>')
  })

  test('4 where nobody is logged in, with the command that helps', async () => {
    const ran = await home.otpd(['project', 'list', '--server', 'http://127.0.0.1:9'])
    expect(ran.exitCode).toBe(4)
    expect(ran.stderr).toContain('otpd login --server http://127.0.0.1:9')
  })

  test('7 says when to try again', async () => {
    answering = () => refusal(429, 'RATE_LIMITED', 'Too many sends.', { 'retry-after': '41' })
    expect((await home.otpd(['project', 'list'])).stderr).toContain('Try again in 41 s.')
  })
})

describe('the server is chosen by', () => {
  test('the flag, then OTPD_SERVER, then the last login, then the default', async () => {
    answering = () => Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    const other = createScriptedServer(() =>
      Response.json({ data: { status: 'operational', service: 'otpd', time: '' } }),
    )
    const health = async (args: string[], env = {}) => (await home.otpd(['health', ...args], { env })).stdout
    expect(await health([])).toContain(server.url)
    expect(await health([], { OTPD_SERVER: other.url })).toContain(other.url)
    expect(await health(['--server', server.url], { OTPD_SERVER: other.url })).toContain(server.url)
    const elsewhere = { OTPD_CONFIG_DIR: join(home.directory, 'none') }
    expect((await home.otpd(['whoami'], { env: elsewhere })).stderr).toContain('http://127.0.0.1:8080')
    void other.stop()
  })

  test('no address with a password, a query or another scheme', async () => {
    for (const url of ['http://u:p@127.0.0.1', 'http://127.0.0.1/?a=1', 'ftp://127.0.0.1', 'http://'])
      expect((await home.otpd(['health', '--server', url])).exitCode).toBe(2)
  })
})

describe('project and application', () => {
  test('are named by name where that is unambiguous, over every page', async () => {
    answering = ({ method, path }) => {
      if (method === 'POST') return Response.json({ data: application }, { status: 201 })
      return path.includes('cursor')
        ? list(project({ id: 'prj_2', name: 'shop' }))
        : Response.json({ data: [project()], pagination: { limit: 200, nextCursor: 'next' } })
    }
    const ran = await home.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--json'])
    expect(ran.exitCode).toBe(0)
    expect(JSON.parse(server.asked.at(-1)?.body ?? '')).toEqual({
      name: 'web',
      projectId: 'prj_2',
      environment: 'test',
    })
  })

  test('are not guessed at where the name is ambiguous', async () => {
    answering = () => list(project({ id: 'prj_1' }), project({ id: 'prj_2' }))
    const ran = await home.otpd(['app', 'create', 'web', '--project', 'storefront', '--env', 'test'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('prj_1')
    expect(ran.stderr).toContain('prj_2')
    expect(server.asked).toHaveLength(1)
  })

  test('that nobody has is 5', async () => {
    answering = () => list()
    const ran = await home.otpd(['app', 'create', 'web', '--project', 'nothing', '--env', 'test'])
    expect(ran).toMatchObject({ exitCode: 5 })
    expect(ran.stderr).toContain('otpd project list')
  })

  test('lists show the names of their projects', async () => {
    const row = { ...application, projectId: project().id, createdAt: '2026-11-20T11:00:00.000Z' }
    answering = ({ path }) => list(path.startsWith('/v1/projects') ? project() : row)
    const { stdout } = await home.otpd(['apps', 'ls'])
    expect(stdout).toMatch(/app_01arz3ndektsv4rrffq69g5fav +web +storefront +test +● active/)
  })
})

describe('--env-file', () => {
  const create = (file: string) => [
    'app',
    'create',
    'web',
    '--project',
    project().id,
    '--env',
    'test',
    '--env-file',
    file,
  ]
  const path = () => join(home.directory, '.env.otpd')

  test('receives the credentials with mode 0600, and the terminal does not', async () => {
    answering = () => Response.json({ data: application }, { status: 201 })
    const ran = await home.otpd(create('.env.otpd'))
    expect(ran.exitCode).toBe(0)
    expect(ran.stdout + ran.stderr).not.toContain(application.clientSecret)
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(readFileSync(path(), 'utf8').split('\n').slice(1)).toEqual([
      `OTPD_SERVER=${server.url}`,
      'OTPD_CLIENT_ID=ph_test_client_c',
      'OTPD_CLIENT_SECRET=ph_test_secret_s',
      'OTPD_API_KEY=ph_test_api_a',
      'OTPD_WEBHOOK_SECRET=whsec_w',
      '',
    ])
  })

  test('that exists is exit 2: not overwritten, and the server is not asked', async () => {
    await Bun.write(path(), 'mine')
    const ran = await home.otpd(create('.env.otpd'))
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(server.asked).toEqual([])
    expect(readFileSync(path(), 'utf8')).toBe('mine')
  })

  test('that cannot be written is found out before the server is asked', async () => {
    const ran = await home.otpd(create('no/such/directory/.env'))
    expect(ran.exitCode).toBe(2)
    expect(server.asked).toEqual([])
  })

  test('is given back where nothing was created', async () => {
    answering = () => refusal(403, 'PLAN_LIMIT_REACHED', 'The plan allows 5 applications.')
    expect((await home.otpd(create('.env.otpd'))).exitCode).toBe(6)
    expect(existsSync(path())).toBe(false)
    expect(readdirSync(home.directory)).toEqual(['.config'])
  })

  test('is where a send finds its credentials and its server', async () => {
    answering = () =>
      Response.json({
        data: {
          requestId: 'otp_1',
          phone: '+14155550100',
          status: 'pending',
          expiresAt: '2026-11-20T12:05:00.000Z',
        },
      })
    const file = `# a comment\nexport OTPD_SERVER="${server.url}"\nOTPD_CLIENT_ID=c\nOTPD_CLIENT_SECRET='s'\nOTPD_API_KEY=k\n`
    await Bun.write(path(), file)
    const env = { OTPD_CONFIG_DIR: join(home.directory, 'none'), OTPD_API_KEY: 'of another application' }
    const ran = await home.otpd(['otp', 'send', '+14155550100', '--env-file', '.env.otpd'], { env })
    expect(ran.exitCode).toBe(0)
    expect(ran.stdout).toContain('in 5 min')
    const headers = Object.fromEntries(server.asked[0]?.headers ?? [])
    expect(headers).toMatchObject({ 'x-client-id': 'c', 'x-client-secret': 's', 'x-api-key': 'k' })
    expect(headers).not.toHaveProperty('authorization')
  })

  test('with a credential missing names it, and asks nobody', async () => {
    await Bun.write(path(), 'OTPD_CLIENT_ID=c\nOTPD_API_KEY=k\n')
    const ran = await home.otpd(['otp', 'verify', 'otp_1', '123456', '--env-file', '.env.otpd'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('OTPD_CLIENT_SECRET')
    expect(server.asked).toEqual([])
  })
})

describe('otp verify', () => {
  test('tells how many attempts are left', async () => {
    const error = {
      code: 'INVALID_CODE',
      message: 'The code is wrong.',
      traceId: 'r',
      metadata: { attemptsRemaining: 4 },
    }
    answering = () => Response.json({ error }, { status: 400 })
    const env = { OTPD_CLIENT_ID: 'c', OTPD_CLIENT_SECRET: 's', OTPD_API_KEY: 'k' }
    const ran = await home.otpd(['otp', 'verify', 'otp_1', '000000'], { env })
    expect(ran.exitCode).toBe(6)
    expect(ran.stderr).toContain('Attempts left: 4.')
  })
})

describe('health', () => {
  test('is 8 for a server that is there and not ready', async () => {
    answering = ({ path }) =>
      path === '/v1/health'
        ? Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
        : refusal(503, 'UNAVAILABLE', 'The server is shutting down.')
    const ran = await home.otpd(['health'])
    expect(ran).toMatchObject({ exitCode: 8, stdout: '' })
    expect(ran.stderr).toContain('shutting down')
  })

  test('waits as long as it is told', async () => {
    let calls = 0
    answering = () =>
      ++calls < 5
        ? refusal(503, 'UNAVAILABLE', 'Not yet.')
        : Response.json({ data: { status: 'operational', service: 'otpd', time: '' } })
    expect((await home.otpd(['health', '--wait', '30s'])).exitCode).toBe(0)
    await server.stop()
    const startedAtMs = home.clock.nowMs
    expect((await home.otpd(['health', '--wait', '30s'])).exitCode).toBe(3)
    expect(home.clock.nowMs - startedAtMs).toBeGreaterThan(29_000)
    expect(home.clock.nowMs - startedAtMs).toBeLessThanOrEqual(30_000)
  })
})

describe('api', () => {
  test('sends --data from the word, a file or standard input', async () => {
    answering = ({ body }) => new Response(body)
    await Bun.write(join(home.directory, 'body.json'), '{"from":"file"}')
    const sent = async (data: string) =>
      (await home.otpd(['api', 'post', '/v1/projects', '--data', data], { input: '{"from":"input"}' })).stdout
    expect(await sent('{"from":"word"}')).toBe('{"from":"word"}\n')
    expect(await sent('@body.json')).toBe('{"from":"file"}\n')
    expect(await sent('-')).toBe('{"from":"input"}\n')
    expect(server.asked[0]?.headers.get('content-type')).toBe('application/json')
    expect(server.asked[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  for (const path of ['//evil.example/v1', 'http://evil.example', 'v1/projects', '@evil.example', ''])
    test(`refuses the path ${JSON.stringify(path)}`, async () => {
      expect((await home.otpd(['api', 'GET', path])).exitCode).toBe(2)
      expect(server.asked).toEqual([])
    })
})

describe('help', () => {
  test('of every command ends with examples, and exits 0', async () => {
    for (const words of [['otp', 'send'], ['app', 'create'], ['login'], ['config', 'show']]) {
      const ran = await home.otpd([...words, '--help'])
      expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
      expect(ran.stdout).toContain(`Examples:\n  otpd ${words.join(' ')}`)
    }
  })

  test('of plain otpd goes to stdout', async () => {
    expect(await home.otpd([])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('is pointed at, with the word that was meant', async () => {
    const ran = await home.otpd(['app', 'list', '--projct', 'x'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('Did you mean --project?')
    expect(ran.stderr).toContain('See: otpd app list --help')
  })
})
