import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, errorResponse, type RequestHandler } from '../cli-fixture.ts'
import { version } from '../../../cli/version.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('exit code', () => {
  const cases: [status: number, code: string, exitCode: number][] = [
    [400, 'INVALID_ARGUMENT', 6],
    [400, 'INVALID_PHONE_NUMBER', 2],
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
      cli.respond = () => errorResponse(status, code, 'A sentence.')
      expect(await cli.home.otpd(['api', 'GET', '/v1/x'])).toMatchObject({ exitCode, stdout: '' })
    })

  test.each([
    [409, 'CONFLICT', 'PROJECT_NOT_EMPTY', 'otpd app list'],
    [403, 'FORBIDDEN', 'APPLICATION_DISABLED', 'otpd app enable APP'],
    [403, 'PLAN_LIMIT_REACHED', undefined, 'otpd admin set-plan'],
    [403, 'ENDPOINT_LIMIT_REACHED', undefined, 'otpd webhook delete WEBHOOK'],
    [502, 'DELIVERY_FAILED', 'INVALID_NUMBER', 'otpd otp list --phone PHONE'],
  ])('%d %s %s names the command that helps', async (status, code, reason, command) => {
    const error = { code, message: 'A sentence.', traceId: 'req_1', reason }
    cli.respond = () => Response.json({ error }, { status })
    const { exitCode, stderr } = await cli.home.otpd(['api', 'GET', '/v1/x'])
    expect(stderr).toContain(command)
    // A limit applies to every token, so the token's source is not mentioned.
    expect(stderr.includes('The token came from')).toBe(exitCode === 4)
  })

  test('3 when no server responds, with what to do', async () => {
    await cli.server.stop()
    const result = await cli.home.otpd(['project', 'list'])
    expect(result).toMatchObject({ exitCode: 3, stdout: '' })
    expect(result.stderr).toContain(`Cannot reach ${cli.server.url} (connection refused).`)
    expect(result.stderr).toContain('the last login')
    expect(result.stderr).toContain('otpd serve')
  })

  test('3 when the response takes longer than --timeout', async () => {
    const { promise, resolve } = Promise.withResolvers<Response>()
    cli.respond = () => promise
    const result = await cli.home.otpd(['project', 'list', '--timeout', '50ms'])
    resolve(new Response())
    expect(result.exitCode).toBe(3)
    expect(result.stderr).toContain('did not respond within')
  })

  test('1 for a response that is not from otpd', async () => {
    cli.respond = () => new Response('<html>', { status: 502 })
    const result = await cli.home.otpd(['project', 'list'])
    expect(result.exitCode).toBe(1)
    expect(result.stderr).toContain('not like an otpd server')
    expect(result.stderr).not.toContain('<html>')
  })

  test('6 for headers that are too large, which the server refuses before it reads them', async () => {
    for (const status of [414, 431]) {
      cli.respond = () => new Response(null, { status })
      const { exitCode, stderr } = await cli.home.otpd(['project', 'list'])
      expect(exitCode).toBe(6)
      expect(stderr).toContain(`its URL and headers are too large (${status}).\n  Shorten what is longest`)
    }
  })

  describe('1 for data of another shape', () => {
    const respondWith =
      (data: unknown, serverVersion?: string): RequestHandler =>
      ({ path }) =>
        path !== '/v1/openapi.json'
          ? Response.json({ data })
          : serverVersion === undefined
            ? errorResponse(404, 'NOT_FOUND', 'No.')
            : Response.json({ info: { version: serverVersion } })

    test('with both versions, if they differ', async () => {
      cli.respond = respondWith([{}], '99.0.0')
      const result = await cli.home.otpd(['app', 'list'])
      expect(result).toMatchObject({ exitCode: 1, stdout: '' })
      expect(result.stderr).toContain(`this program is ${version}, the server is 99.0.0.`)
      expect(result.stderr).toContain('Install the same version')
    })

    test.each([[version], [undefined]])(
      'as a bug, if the server says the version %s',
      async (serverVersion) => {
        cli.respond = respondWith([{}], serverVersion)
        const result = await cli.home.otpd(['app', 'list'])
        expect(result.exitCode).toBe(1)
        expect(result.stderr).toContain('this is a bug in otpd')
      },
    )

    test.each([[{}], [[]], [{ data: null }]])('%j, which has no data', async (body) => {
      cli.respond = () => Response.json(body)
      for (const args of [['app', 'list'], ['whoami']]) expect((await cli.home.otpd(args)).exitCode).toBe(1)
    })
  })

  test.each([
    [404, { code: 'NOT_FOUND', reason: 'ROUTE_NOT_FOUND', message: 'There is no such route.' }],
    [405, { code: 'METHOD_NOT_ALLOWED', message: 'There is no such route with this method.' }],
  ])('5 for a route that the server lacks, with both versions if they differ (%d)', async (status, error) => {
    let serverVersion = '0.2.0'
    cli.respond = ({ path }) =>
      path === '/v1/openapi.json'
        ? Response.json({ info: { version: serverVersion } })
        : Response.json({ error: { ...error, traceId: 'req_1' } }, { status })
    const older = await cli.home.otpd(['routes'])
    expect(older).toMatchObject({ exitCode: 5, stdout: '' })
    expect(older.stderr).toContain(`has no such route: this program is ${version}, the server is 0.2.0.`)
    expect(older.stderr).toContain('Install the same version')
    expect(JSON.parse((await cli.home.otpd(['routes', '--json'])).stderr)).toMatchObject({ error })
    serverVersion = version
    expect((await cli.home.otpd(['routes'])).stderr).toContain(error.message)
  })

  test('2 for a field that an older server lacks, with both versions', async () => {
    const details = [
      { in: 'body', path: 'countries', code: 'UNKNOWN', message: 'Unknown property. Remove it.' },
    ]
    const error = { code: 'INVALID_ARGUMENT', message: 'The request has a fault.', details }
    cli.respond = ({ path }) =>
      path === '/v1/openapi.json'
        ? Response.json({ info: { version: '0.2.0' } })
        : Response.json({ error }, { status: 400 })
    const id = `app_${'0'.repeat(26)}`
    const result = await cli.home.otpd(['app', 'update', id, '--countries', 'GB'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toBe(
      [
        'Error: --countries: Unknown property. Remove it.',
        `  ${cli.server.url} may lack it: this program is ${version}, the server is 0.2.0.`,
        '  Install the same version on both machines, then restart the server.\n',
      ].join('\n'),
    )
  })

  test('5 for a server address with a path that otpd does not have', async () => {
    cli.respond = () =>
      Response.json(
        { error: { code: 'NOT_FOUND', reason: 'ROUTE_NOT_FOUND', message: 'No route.' } },
        { status: 404 },
      )
    const { stderr } = await cli.home.otpd(['project', 'list', '--server', `${cli.server.url}/v1`])
    expect(stderr).toContain(
      `That address is from --server. It has a path; without one: --server ${cli.server.url}\n`,
    )
    expect((await cli.home.otpd(['project', 'list'])).stderr).not.toContain('path;')
  })

  test('4 without a login, with the command that helps', async () => {
    const result = await cli.home.otpd(['project', 'list', '--server', 'http://127.0.0.1:9'])
    expect(result.exitCode).toBe(4)
    expect(result.stderr).toContain('otpd login --server http://127.0.0.1:9')
  })

  test('7 says when to try again', async () => {
    cli.respond = () => errorResponse(429, 'RATE_LIMITED', 'Too many sends.', { 'retry-after': '41' })
    expect((await cli.home.otpd(['project', 'list'])).stderr).toContain('Try again in 41 s.')
  })
})
