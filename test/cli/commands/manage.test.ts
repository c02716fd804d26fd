import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createCliFixture, pageResponse, sampleProject, errorResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const at = '2026-11-20T11:00:00.000Z'
const web = {
  id: 'app_01arz3ndektsv4rrffq69g5fav',
  name: 'web',
  projectId: sampleProject().id,
  environment: 'live',
  status: 'active',
  clientId: 'ph_live_client_c',
  otpTtlSeconds: 300,
  clientSecretPreview: 'ph_live_secret_1a2b****9f0e',
  apiKeyPreview: 'ph_live_api_1a2b****9f0e',
  defaultLocale: null,
  webOtpDomain: null,
  androidAppHash: null,
  defaultCountry: null,
  countries: ['AT', 'DE'],
  createdAt: at,
  updatedAt: at,
}
const calls = () => cli.server.requests.map(({ method, path }) => `${method} ${path}`)
const lastBody = () => JSON.parse(cli.server.requests.at(-1)?.body ?? 'null')

describe('an action that cannot be undone', () => {
  const everything = [
    ['project', 'delete', sampleProject().id],
    ['app', 'rm', web.id],
    ['rotate', web.id, 'secret'],
    ['webhook', 'delete', 'whk_01arz3ndektsv4rrffq69g5fav'],
  ]

  test.each(everything)('requires --yes when it cannot prompt: %s %s', async (...args) => {
    for (const rest of [{ input: '' }, { env: { OTPD_NO_INPUT: '1' } }]) {
      const result = await cli.home.otpd(args, rest)
      expect(result).toMatchObject({ exitCode: 2, stdout: '', questions: [] })
      expect(result.stderr).toContain('Confirm it with --yes.')
    }
    expect((await cli.home.otpd([...args, '--json'])).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })

  test.each(['+1', '+44*', '0044', '0.0.0.0/0', '1.2.3.4/7', '::/0', '2a00::/15'])(
    'asks before a guard rule for as much as %s',
    async (value) => {
      const noTerminal = await cli.home.otpd(['guard', 'deny', value], { input: '' })
      expect(noTerminal.stderr).toContain('Confirm it with --yes.')
      const wrong = await cli.home.otpd(['guard', 'allow', value], { answers: ['y'] })
      expect(wrong).toMatchObject({ exitCode: 2, questions: [`Type ${value} to confirm: `] })
      expect(wrong.stderr).toContain('pass the allowances of the guard.')
      expect(cli.server.requests).toEqual([])
      const rule = { id: 'rul_1', effect: 'deny', target: 'prefix', value, appId: null, expiresAt: null }
      cli.respond = () => Response.json({ data: rule }, { status: 201 })
      const confirmed = await cli.home.otpd(['guard', 'deny', value], { answers: [value] })
      expect(confirmed).toMatchObject({ exitCode: 0, stdout: 'rul_1\n' })
      expect(confirmed.stderr).toContain('This refuses codes for all ')
    },
  )

  test.each(['+882', '+1415', 'US', '001', '10.0.0.0/8', '2a00::/16', '203.0.113.7', '+14155550123'])(
    'asks nothing before a guard rule for %s',
    async (value) => {
      const rule = { id: 'rul_1', effect: 'deny', target: 'phone', value, appId: null, expiresAt: null }
      cli.respond = () => Response.json({ data: rule }, { status: 201 })
      expect((await cli.home.otpd(['guard', 'deny', value], { input: '' })).exitCode).toBe(0)
    },
  )

  test.each([
    ['+5511987654321', '+551187654321'],
    ['+551187654321', '0055 (11) 98765-4321'],
    ['GB', 'uk'],
    ['+882', '+88 2*'],
    ['203.0.113.7', '203.0.113.7'],
    ['001', '001'],
  ])('removes the guard rule for %s by %s, and no other', async (value, typed) => {
    const rules = [value, '+5512', 'NL', '+1', '203.0.113.0/24'].map((one, index) => ({
      id: `rul_${String(index).padStart(26, '0')}`,
      value: one,
    }))
    cli.respond = ({ method }) =>
      method === 'GET' ? pageResponse(...rules) : Response.json({ data: { id: rules[0]?.id, deleted: true } })
    const { stdout } = await cli.home.otpd(['guard', 'remove', typed])
    expect(calls().at(-1)).toBe(`DELETE /v1/guard/rules/${rules[0]?.id}`)
    expect(stdout).toBe(`✓ rule ${typed} removed\n`)
  })

  test('continues once the name or the id was typed', async () => {
    cli.respond = ({ method }) =>
      method === 'GET' ? Response.json({ data: web }) : Response.json({ data: { id: web.id, deleted: true } })
    const result = await cli.home.otpd(['app', 'delete', web.id], { answers: ['web'] })
    expect(result).toMatchObject({ exitCode: 0, questions: ['Type web to confirm: '] })
    expect(result.stderr).toContain('Delete the application web (live)?')
    expect(calls()).toEqual([`GET /v1/applications/${web.id}`, `DELETE /v1/applications/${web.id}`])
    expect((await cli.home.otpd(['app', 'delete', web.id], { answers: [web.id] })).exitCode).toBe(0)
  })

  test.each([
    ['another name', 'wbe', 2],
    ['nothing', '', 2],
    ['Ctrl-C', null, 130],
  ])('stops at %s', async (_what, response, exitCode) => {
    cli.respond = () => Response.json({ data: web })
    const result = await cli.home.otpd(['app', 'delete', web.id], { answers: [response] })
    expect(result).toMatchObject({ exitCode, stdout: '' })
    expect(result.stderr).toContain('nothing was changed')
    expect(calls()).toEqual([`GET /v1/applications/${web.id}`])
  })

  test('does not prompt with --yes', async () => {
    cli.respond = ({ method }) =>
      method === 'GET'
        ? pageResponse(sampleProject())
        : Response.json({ data: { id: sampleProject().id, deleted: true } })
    const result = await cli.home.otpd(['project', 'delete', 'storefront', '--yes'])
    expect(result).toMatchObject({ exitCode: 0, questions: [] })
    expect(result.stdout).toBe('✓ Project storefront deleted\n')
    expect(calls()).toEqual(['GET /v1/projects?limit=200', `DELETE /v1/projects/${sampleProject().id}`])
  })
})

describe('project', () => {
  test('update sends only the given fields', async () => {
    cli.respond = () => Response.json({ data: sampleProject() })
    await cli.home.otpd(['project', 'update', sampleProject().id, '--name', 'shop'])
    expect(lastBody()).toEqual({ name: 'shop' })
    await cli.home.otpd(['project', 'update', sampleProject().id, '--description', ''])
    expect(lastBody()).toEqual({ description: null })
  })

  test.each(['project', 'app', 'webhook', 'profile'])(
    '%s update with nothing to change is 2',
    async (noun) => {
      const result = await cli.home.otpd([noun, 'update', ...(noun === 'profile' ? [] : ['x'])])
      expect(result).toMatchObject({ exitCode: 2, stdout: '' })
      expect(result.stderr).toContain('There is nothing to change.')
      expect(cli.server.requests).toEqual([])
    },
  )

  test('get shows it, and --json is the body of the API', async () => {
    const body = JSON.stringify({ data: sampleProject({ description: 'The shop', applicationCount: 2 }) })
    cli.respond = () => new Response(body)
    const { stdout } = await cli.home.otpd(['project', 'show', sampleProject().id])
    expect(stdout).toMatch(/^storefront\n {2}Id +prj_01arz3ndektsv4rrffq69g5fav\n {2}Description +The shop\n/)
    expect((await cli.home.otpd(['project', 'get', sampleProject().id, '--json'])).stdout).toBe(`${body}\n`)
  })
})

describe('app', () => {
  test('get shows previews of the secrets, and leaves out unset fields', async () => {
    cli.respond = ({ path }) =>
      Response.json({
        data: path.startsWith('/v1/projects') ? sampleProject() : { ...web, apiKeyRotatedAt: at },
      })
    const result = await cli.home.otpd(['app', 'get', web.id], { columns: 120 })
    const stdout = Bun.stripANSI(result.stdout)
    expect(stdout).toMatch(/Project +storefront \(prj_\w+\)\n/)
    expect(stdout).toContain('ph_live_secret_1a2b****9f0e\n')
    expect(stdout).toContain('ph_live_api_1a2b****9f0e  rotated 1 h ago\n')
    expect(stdout).toMatch(/Code lifetime +5 min\n/)
    expect(stdout).toMatch(/Countries +AT, DE\n/)
    expect(stdout).not.toContain('Language')
  })

  test('update sends numbers as numbers, and empty values as null', async () => {
    cli.respond = () => Response.json({ data: web })
    const flags = [
      '--otp-ttl',
      '120',
      '--webotp-domain',
      'example.com',
      '--android-hash',
      '',
      '--locale',
      'de',
      '--default-country',
      'GB',
      '--countries',
      'DE, AT',
    ]
    expect((await cli.home.otpd(['app', 'update', web.id, ...flags])).exitCode).toBe(0)
    expect(lastBody()).toEqual({
      otpTtlSeconds: 120,
      webOtpDomain: 'example.com',
      androidAppHash: null,
      defaultLocale: 'de',
      defaultCountry: 'GB',
      countries: ['DE', 'AT'],
    })
    expect((await cli.home.otpd(['app', 'update', web.id, '--countries', ''])).exitCode).toBe(0)
    expect(lastBody()).toEqual({ countries: null })
    expect((await cli.home.otpd(['app', 'update', web.id, '--otp-ttl', '2m'])).exitCode).toBe(2)
  })

  test.each([
    ['enable', 'active', []],
    ['disable', 'disabled', ['--yes']],
  ])('%s makes it %s', async (verb, status, flags) => {
    cli.respond = () => Response.json({ data: { ...web, status } })
    const result = await cli.home.otpd(['app', verb, web.id, ...flags])
    expect(result.stdout).toBe(`✓ Application web is ${status}\n`)
    expect(lastBody()).toEqual({ status })
  })

  test('secret is alone on its line', async () => {
    cli.respond = () => Response.json({ data: { webhookSecret: 'whsec_1' } })
    expect((await cli.home.otpd(['app', 'secret', web.id])).stdout).toBe('whsec_1\n')
  })
})

describe('rotate', () => {
  const rotated = (type: string) =>
    Response.json({ data: { type, value: 'the new one', rotatedAt: '2026-11-20T12:00:00.000Z' } })

  test.each([
    ['secret', 'secret', 'OTPD_CLIENT_SECRET'],
    ['api', 'api', 'OTPD_API_KEY'],
    ['webhook-secret', 'webhook_secret', 'OTPD_WEBHOOK_SECRET'],
  ])('%s prints only the new value, or saves it to a file', async (kind, type, variable) => {
    cli.respond = () => rotated(type)
    const printed = await cli.home.otpd(['rotate', web.id, kind, '--yes'])
    expect(printed).toMatchObject({ exitCode: 0, stdout: 'the new one\n' })
    expect(calls()).toEqual([`POST /v1/applications/${web.id}/rotate/${type}`])

    const saved = await cli.home.otpd(['rotate', web.id, kind, '--yes', '--env-file', 'new.env'])
    expect(saved.stdout + saved.stderr).not.toContain('the new one')
    const path = join(cli.home.directory, 'new.env')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readFileSync(path, 'utf8')).toContain(`\nOTPD_SERVER=${cli.server.url}\n${variable}=the new one\n`)
  })

  test('makes no call when the file exists, and leaves no file when the call fails', async () => {
    await Bun.write(join(cli.home.directory, 'taken.env'), 'mine')
    const existingFileResult = await cli.home.otpd([
      'rotate',
      web.id,
      'api',
      '--yes',
      '--env-file',
      'taken.env',
    ])
    expect(existingFileResult).toMatchObject({ exitCode: 2, stdout: '' })
    expect(cli.server.requests).toEqual([])
    cli.respond = () => errorResponse(404, 'NOT_FOUND', 'There is no such application.')
    const refused = await cli.home.otpd(['rotate', web.id, 'api', '--yes', '--env-file', 'new.env'])
    expect(refused.exitCode).toBe(5)
    expect(existsSync(join(cli.home.directory, 'new.env'))).toBe(false)
  })

  test('of an unknown credential is 2', async () => {
    expect((await cli.home.otpd(['rotate', web.id, 'password', '--yes'])).exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })
})

describe('a table', () => {
  const description = 'x'.repeat(200)
  const long = sampleProject({ name: 'ein sehr langer Name für ein Projekt 漢字', description })

  test.each([60, 80, 200])(
    'fits a terminal of %i columns, with a shortened id if there is no room',
    async (columns) => {
      cli.respond = () => pageResponse(long, sampleProject())
      const { stdout } = await cli.home.otpd(['project', 'list'], { columns })
      const lines = Bun.stripANSI(stdout).trimEnd().split('\n')
      expect(lines).toHaveLength(3)
      for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
      expect(lines[1]).toEndWith(columns < 100 ? '  prj_01ar…5fav' : `  ${long.id}`)
      expect(lines[1]).toContain('…')
    },
  )

  test('is not truncated in a pipe', async () => {
    cli.respond = () => pageResponse(long)
    expect((await cli.home.otpd(['project', 'list'])).stdout).toContain(description)
  })

  test('shows relative times on a terminal, and full times in a pipe', async () => {
    cli.respond = () => pageResponse(sampleProject())
    expect((await cli.home.otpd(['project', 'list'], { columns: 80 })).stdout).toContain(' 1 h ago')
    expect((await cli.home.otpd(['project', 'list'])).stdout).toMatch(/ 2026-11-\d\d \d\d:\d\d:00/)
  })
})
