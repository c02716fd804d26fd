import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createConversation, page, project, refusal } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

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
  test('are named by name where that is unambiguous, over every page', async () => {
    talk.answer = ({ method, path }) => {
      if (method === 'POST') return Response.json({ data: application }, { status: 201 })
      return path.includes('cursor')
        ? page(project({ id: 'prj_2', name: 'shop' }))
        : Response.json({ data: [project()], pagination: { limit: 200, nextCursor: 'next' } })
    }
    const ran = await talk.home.otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--json'])
    expect(ran.exitCode).toBe(0)
    expect(JSON.parse(talk.server.asked.at(-1)?.body ?? '')).toEqual({
      name: 'web',
      projectId: 'prj_2',
      environment: 'test',
    })
  })

  test('are not guessed at where the name is ambiguous', async () => {
    talk.answer = () => page(project({ id: 'prj_1' }), project({ id: 'prj_2' }))
    const ran = await talk.home.otpd(['app', 'create', 'web', '--project', 'storefront', '--env', 'test'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('prj_1')
    expect(ran.stderr).toContain('prj_2')
    expect(talk.server.asked).toHaveLength(1)
  })

  test('that nobody has is 5', async () => {
    talk.answer = () => page()
    const ran = await talk.home.otpd(['app', 'create', 'web', '--project', 'nothing', '--env', 'test'])
    expect(ran).toMatchObject({ exitCode: 5 })
    expect(ran.stderr).toContain('otpd project list')
  })

  test('lists show the names of their projects', async () => {
    const row = { ...application, projectId: project().id, createdAt: '2026-11-20T11:00:00.000Z' }
    talk.answer = ({ path }) => page(path.startsWith('/v1/projects') ? project() : row)
    const { stdout } = await talk.home.otpd(['apps', 'ls'])
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
  const path = () => join(talk.home.directory, '.env.otpd')

  test('receives the credentials with mode 0600, and the terminal does not', async () => {
    talk.answer = () => Response.json({ data: application }, { status: 201 })
    const ran = await talk.home.otpd(create('.env.otpd'))
    expect(ran.exitCode).toBe(0)
    expect(ran.stdout + ran.stderr).not.toContain(application.clientSecret)
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    expect(readFileSync(path(), 'utf8').split('\n').slice(1)).toEqual([
      `OTPD_SERVER=${talk.server.url}`,
      'OTPD_CLIENT_ID=ph_test_client_c',
      'OTPD_CLIENT_SECRET=ph_test_secret_s',
      'OTPD_API_KEY=ph_test_api_a',
      'OTPD_WEBHOOK_SECRET=whsec_w',
      '',
    ])
  })

  test('that exists is exit 2: not overwritten, and the server is not asked', async () => {
    await Bun.write(path(), 'mine')
    const ran = await talk.home.otpd(create('.env.otpd'))
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(talk.server.asked).toEqual([])
    expect(readFileSync(path(), 'utf8')).toBe('mine')
  })

  test('that cannot be written is found out before the server is asked', async () => {
    const ran = await talk.home.otpd(create('no/such/directory/.env'))
    expect(ran.exitCode).toBe(2)
    expect(talk.server.asked).toEqual([])
  })

  test('is given back where nothing was created', async () => {
    talk.answer = () => refusal(403, 'PLAN_LIMIT_REACHED', 'The plan allows 5 applications.')
    expect((await talk.home.otpd(create('.env.otpd'))).exitCode).toBe(6)
    expect(existsSync(path())).toBe(false)
    expect(readdirSync(talk.home.directory)).toEqual(['.config'])
  })

  test('is where a send finds its credentials and its server', async () => {
    talk.answer = () =>
      Response.json({
        data: {
          requestId: 'otp_1',
          phone: '+14155550100',
          status: 'pending',
          expiresAt: '2026-11-20T12:05:00.000Z',
        },
      })
    const file = `# a comment\nexport OTPD_SERVER="${talk.server.url}"\nOTPD_CLIENT_ID=c\nOTPD_CLIENT_SECRET='s'\nOTPD_API_KEY=k\n`
    await Bun.write(path(), file)
    const env = { OTPD_CONFIG_DIR: join(talk.home.directory, 'none'), OTPD_API_KEY: 'of another application' }
    const ran = await talk.home.otpd(['otp', 'send', '+14155550100', '--env-file', '.env.otpd'], {
      env,
      columns: 80,
    })
    expect(ran.exitCode).toBe(0)
    expect(ran.stdout).toContain('in 5 min')
    const headers = Object.fromEntries(talk.server.asked[0]?.headers ?? [])
    expect(headers).toMatchObject({ 'x-client-id': 'c', 'x-client-secret': 's', 'x-api-key': 'k' })
    expect(headers).not.toHaveProperty('authorization')
  })

  test('with a credential missing names it, and asks nobody', async () => {
    await Bun.write(path(), 'OTPD_CLIENT_ID=c\nOTPD_API_KEY=k\n')
    const ran = await talk.home.otpd(['otp', 'verify', 'otp_1', '123456', '--env-file', '.env.otpd'])
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('OTPD_CLIENT_SECRET')
    expect(talk.server.asked).toEqual([])
  })
})
