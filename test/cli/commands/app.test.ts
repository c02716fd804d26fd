import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createCliFixture, pageResponse, sampleProject, errorResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

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

describe('project and application', () => {
  test('are found by an unambiguous name, over all pages', async () => {
    cli.respond = ({ method, path }) => {
      if (method === 'POST') return Response.json({ data: application }, { status: 201 })
      if (path.startsWith('/v1/applications')) return pageResponse()
      return path.includes('cursor')
        ? pageResponse(sampleProject({ id: 'prj_2', name: 'shop' }))
        : Response.json({ data: [sampleProject()], pagination: { limit: 200, nextCursor: 'next' } })
    }
    const result = await cli.home.otpd([
      'app',
      'create',
      'web',
      '--project',
      'shop',
      '--env',
      'test',
      '--json',
    ])
    expect(result.exitCode).toBe(0)
    expect(JSON.parse(cli.server.requests.at(-1)?.body ?? '')).toEqual({
      name: 'web',
      projectId: 'prj_2',
      environment: 'test',
    })
  })

  test('are not guessed when the name is ambiguous', async () => {
    cli.respond = () => pageResponse(sampleProject({ id: 'prj_1' }), sampleProject({ id: 'prj_2' }))
    const result = await cli.home.otpd(['app', 'create', 'web', '--project', 'storefront', '--env', 'test'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('prj_1')
    expect(result.stderr).toContain('prj_2')
    expect(cli.server.requests).toHaveLength(1)
  })

  test('with an unknown name is 5', async () => {
    cli.respond = () => pageResponse()
    const result = await cli.home.otpd(['app', 'create', 'web', '--project', 'nothing', '--env', 'test'])
    expect(result).toMatchObject({ exitCode: 5 })
    expect(result.stderr).toContain('otpd project list')
  })

  test('lists show the names of their projects', async () => {
    const row = { ...application, projectId: sampleProject().id, createdAt: '2026-11-20T11:00:00.000Z' }
    cli.respond = ({ path }) => pageResponse(path.startsWith('/v1/projects') ? sampleProject() : row)
    const { stdout } = await cli.home.otpd(['apps', 'ls'])
    expect(stdout).toMatch(/web +storefront +test +● active +app_01arz3ndektsv4rrffq69g5fav/)
    expect(await cli.home.otpd(['app', 'list', '--project', ''])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('The project is empty.'),
    })
  })
})

describe('--env-file', () => {
  const create = (file: string) => [
    'app',
    'create',
    'web',
    '--project',
    sampleProject().id,
    '--env',
    'test',
    '--env-file',
    file,
  ]
  const path = () => join(cli.home.directory, '.env.otpd')

  test('receives the credentials with mode 0600, and the terminal does not', async () => {
    cli.respond = ({ method }) =>
      method === 'GET' ? pageResponse() : Response.json({ data: application }, { status: 201 })
    const result = await cli.home.otpd(create('.env.otpd'))
    expect(result.exitCode).toBe(0)
    expect(result.stdout + result.stderr).not.toContain(application.clientSecret)
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(readFileSync(path(), 'utf8').split('\n').slice(1)).toEqual([
      `OTPD_SERVER=${cli.server.url}`,
      'OTPD_CLIENT_ID=ph_test_client_c',
      'OTPD_CLIENT_SECRET=ph_test_secret_s',
      'OTPD_API_KEY=ph_test_api_a',
      'OTPD_WEBHOOK_SECRET=whsec_w',
      '',
    ])
  })

  test('that exists is 2: it is not overwritten, and no call is made', async () => {
    await Bun.write(path(), 'mine')
    const result = await cli.home.otpd(create('.env.otpd'))
    expect(result).toMatchObject({ exitCode: 2, stdout: '' })
    expect(cli.server.requests).toEqual([])
    expect(readFileSync(path(), 'utf8')).toBe('mine')
  })

  test('that cannot be written fails before any call', async () => {
    const result = await cli.home.otpd(create('no/such/directory/.env'))
    expect(result.exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })

  test('is removed when nothing was created', async () => {
    cli.respond = () => errorResponse(403, 'PLAN_LIMIT_REACHED', 'The plan allows 5 applications.')
    expect((await cli.home.otpd(create('.env.otpd'))).exitCode).toBe(6)
    expect(existsSync(path())).toBe(false)
    expect(readdirSync(cli.home.directory)).toEqual(['.config'])
  })

  test('gives a send its credentials and its server', async () => {
    cli.respond = () =>
      Response.json({
        data: {
          code: '424242',
          requestId: 'otp_1',
          phone: '+14155550100',
          status: 'pending',
          expiresAt: '2026-11-20T12:05:00.000Z',
        },
      })
    const file = `# a comment\nexport OTPD_SERVER="${cli.server.url}"\nOTPD_CLIENT_ID=c\nOTPD_CLIENT_SECRET='s'\nOTPD_API_KEY=k\n`
    await Bun.write(path(), file)
    const env = { OTPD_CONFIG_DIR: join(cli.home.directory, 'none'), OTPD_API_KEY: 'of another application' }
    const result = await cli.home.otpd(['otp', 'send', '+14155550100', '--env-file', '.env.otpd'], {
      env,
      columns: 80,
    })
    expect(result.exitCode).toBe(0)
    expect(result.stdout).toContain('in 5 min')
    const headers = Object.fromEntries(cli.server.requests[0]?.headers ?? [])
    expect(headers).toMatchObject({ 'x-client-id': 'c', 'x-client-secret': 's', 'x-api-key': 'k' })
    expect(headers).not.toHaveProperty('authorization')
  })

  test('names a missing credential, and makes no call', async () => {
    await Bun.write(path(), 'OTPD_CLIENT_ID=c\nOTPD_API_KEY=k\n')
    const result = await cli.home.otpd(['otp', 'verify', 'otp_1', '123456', '--env-file', '.env.otpd'])
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('OTPD_CLIENT_SECRET')
    expect(cli.server.requests).toEqual([])
  })
})
