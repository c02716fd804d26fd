import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createCliFixture, errorResponse, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

describe('api', () => {
  test('sends --data from the argument, a file or standard input', async () => {
    cli.respond = ({ body }) => new Response(body)
    await Bun.write(join(cli.home.directory, 'body.json'), '{"from":"file"}')
    const sent = async (data: string) =>
      (await cli.home.otpd(['api', 'post', '/v1/projects', '--data', data], { input: '{"from":"input"}' }))
        .stdout
    expect(await sent('{"from":"word"}')).toBe('{"from":"word"}\n')
    expect(await sent('@body.json')).toBe('{"from":"file"}\n')
    expect(await sent('-')).toBe('{"from":"input"}\n')
    expect(cli.server.requests[0]?.headers.get('content-type')).toBe('application/json')
    expect(cli.server.requests[0]?.headers.get('authorization')).toBe('Bearer token')
  })

  test('is a GET without a method, and adds the leading slash', async () => {
    cli.respond = ({ method, path }) => Response.json({ method, path })
    const call = async (...args: string[]) => JSON.parse((await cli.home.otpd(['api', ...args])).stdout)
    expect(await call('v1/projects')).toEqual({ method: 'GET', path: '/v1/projects' })
    expect(await call('/v1/otp', '-X', 'GET', '-f', 'phone=+1415')).toEqual({
      method: 'GET',
      path: '/v1/otp?phone=%2B1415',
    })
    expect(await call('v1/projects', '-f', 'name=a=b')).toMatchObject({ method: 'POST' })
    expect(JSON.parse(cli.server.requests.at(-1)?.body ?? '')).toEqual({ name: 'a=b' })
  })

  test('says that --field made it a POST, unless the method was named', async () => {
    cli.respond = () => Response.json({})
    const notes = async (...args: string[]) =>
      (await cli.home.otpd(['api', 'v1/projects', '-f', 'name=a', ...args])).stderr
    expect(await notes()).toContain('POST, because of --field.')
    expect(await notes('-X', 'POST')).toBe('')
    expect(await cli.home.otpd(['api', 'GET', 'v1/projects', '--data', '{}'])).toMatchObject({ exitCode: 2 })
  })

  test('names the command for a call that only an application may make', async () => {
    const error = {
      code: 'UNAUTHENTICATED',
      reason: 'MISSING_CREDENTIAL',
      message: 'x-client-id is missing.',
    }
    cli.respond = () => Response.json({ error }, { status: 401 })
    const { stderr } = await cli.home.otpd(['api', 'POST', '/v1/otp/send', '-f', 'phone=+14155550100'])
    expect(stderr).toContain('otpd otp send --env-file FILE')
    expect(stderr).not.toContain('otpd login')
  })

  test.each([
    ['/v1/logs?appId=app_1', 'otpd app list'],
    ['/v1/applications?projectId=prj_1', 'otpd project list'],
    ['/v1/analytics/timeseries?appId=app_1', 'otpd app list'],
    ['/v1/otp/otp_1', 'otpd otp list'],
  ])('says where to look for the id that GET %s does not find', async (path, command) => {
    cli.respond = () => errorResponse(404, 'NOT_FOUND', 'No such thing.')
    expect((await cli.home.otpd(['api', path])).stderr).toContain(`List them with: ${command}\n`)
  })

  test('prints the headers with --include, and all pages with --paginate', async () => {
    cli.respond = ({ path }) =>
      path.includes('cursor=next')
        ? pageResponse(2)
        : Response.json(
            { data: [1], pagination: { limit: 50, nextCursor: 'next' } },
            { headers: { 'x-request-id': 'req_1' } },
          )
    const all = await cli.home.otpd(['api', 'v1/projects', '--paginate'])
    expect(JSON.parse(all.stdout)).toEqual({ data: [1, 2], pagination: { limit: 2, nextCursor: null } })
    const { stdout } = await cli.home.otpd(['api', 'v1/projects', '-i'])
    expect(stdout).toMatch(/^HTTP 200\n(.+\n)*x-request-id: req_1\n(.+\n)*\n\{"data":\[1\]/)
  })

  for (const path of ['//evil.example/v1', 'http://evil.example', '\\\\evil.example', ''])
    test(`rejects the path ${JSON.stringify(path)}`, async () => {
      expect((await cli.home.otpd(['api', 'GET', path])).exitCode).toBe(2)
      expect(cli.server.requests).toEqual([])
    })
})
