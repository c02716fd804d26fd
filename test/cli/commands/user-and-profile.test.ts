import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCliFixture, pageResponse } from '../cli-fixture.ts'

let cli: ReturnType<typeof createCliFixture>

beforeEach(() => {
  cli = createCliFixture()
})

afterEach(() => cli.end())

const at = '2026-11-20T11:00:00.000Z'
const user = {
  id: 'vpi_01arz3ndektsv4rrffq69g5fav',
  phone: '+14155550100',
  country: 'US',
  verificationCount: 3,
  applications: ['app_1', 'app_2'],
  firstVerifiedAt: at,
  lastVerifiedAt: '2026-11-20T11:59:30.000Z',
}
const me = {
  id: 'dev_01arz3ndektsv4rrffq69g5fav',
  uid: 'dev_01arz3ndektsv4rrffq69g5fav',
  email: 'ada@example.com',
  name: 'Ada',
  company: null,
  plan: 'free',
  virtualPhoneNumber: '+99912345678',
  limits: {
    projects: 10,
    applications: 20,
    sendPerMinute: 60,
    verifyPerMinute: 0,
    consolePerMinute: 0,
    lookupsPerMinute: 0,
  },
  createdAt: at,
  updatedAt: at,
}

describe('user', () => {
  test('list shows the number of verifications and the time of the last', async () => {
    cli.respond = () => pageResponse(user, { ...user, verificationCount: 1 })
    const { stdout } = await cli.home.otpd(['users', 'ls'], { columns: 120 })
    expect(Bun.stripANSI(stdout)).toMatch(/\+14155550100 +US +3 +30 s ago +2 +vpi_\w+\n\S+ +US +1 /)
  })

  test('an empty list says what to do', async () => {
    cli.respond = () => pageResponse()
    expect((await cli.home.otpd(['user', 'list'])).stdout).toContain('otpd otp send')
  })

  test('get requests the phone as it was typed, and names the applications that still exist', async () => {
    cli.respond = ({ path }) =>
      path.startsWith('/v1/users')
        ? Response.json({ data: user })
        : pageResponse({ id: 'app_1', name: 'web' })
    const { stdout } = await cli.home.otpd(['user', 'get', '+14155550100'])
    expect(cli.server.requests[0]?.path).toBe('/v1/users/%2B14155550100')
    expect(stdout).toMatch(/ {2}Applications +web \(app_1\), app_2\n$/)
  })

  test('ls --phone asks the server, and says where last digits were searched', async () => {
    cli.respond = () => pageResponse(user)
    const digits = await cli.home.otpd(['user', 'ls', '--phone', '0100'])
    expect(digits.stderr).toContain('in the newest 1,000 users')
    const national = await cli.home.otpd(['user', 'ls', '--phone', '(415) 555-0100', '--country', 'US'])
    expect(national.stderr).not.toContain('newest 1,000')
    cli.respond = () => pageResponse()
    const none = await cli.home.otpd(['user', 'ls', '--phone', '0999', '--country', 'US'])
    expect(none.stdout).toBe('No phone that was verified matches.\n')
    expect(cli.server.requests.slice(0, 2).map(({ path }) => path)).toEqual([
      expect.stringContaining('phone=0100'),
      expect.stringMatching(/phone=%28415%29[+%20]+555-0100.*country=US/),
    ])
  })

  test('unlock and erase find a number by its last digits if it only got codes', async () => {
    const phones = ['+447700900123', '+14155550123', 'erased']
    cli.respond = ({ method, path }) =>
      method !== 'GET'
        ? Response.json({ data: { checkBudgets: 1, admissions: 0, otpRequests: 1, logEntries: 1, users: 0 } })
        : path.startsWith('/v1/otp?')
          ? pageResponse(...phones.map((phone) => ({ phone })))
          : pageResponse(user)
    const run = (action: string, digits: string) => cli.home.otpd(['user', action, digits, '--yes'])
    expect((await run('unlock', '07700 900123')).stdout).toBe('✓ Unlocked +447700900123\n')
    expect((await run('erase', '5550123')).stdout).toStartWith('✓ Erased +14155550123 from')
    expect(cli.server.requests.filter(({ method }) => method !== 'GET').map(({ path }) => path)).toEqual([
      '/v1/users/%2B447700900123/unlock',
      '/v1/users/%2B14155550123?erase=true',
    ])
    const many = await run('erase', '0123')
    expect([many.exitCode, many.stderr]).toEqual([2, expect.stringContaining('2 numbers end with 0123')])
    const none = await run('erase', '0999')
    expect([none.exitCode, none.stderr]).toEqual([5, expect.stringContaining('No recent number ends with')])
  })
})

describe('profile', () => {
  test('get shows the limits of the plan', async () => {
    cli.respond = () => Response.json({ data: me })
    const { stdout } = await cli.home.otpd(['profile', 'get'])
    expect(stdout).toMatch(/Limits +10 projects, 20 applications\n/)
    expect(stdout).toMatch(/Sends +60 per minute and application\n {2}Verifications +unlimited\n/)
    expect((await cli.home.otpd(['profile', 'get', '-q'])).stdout).toBe(`${me.id}\n`)
  })

  test('update sends the given fields, and an empty one as null', async () => {
    cli.respond = () => Response.json({ data: me })
    await cli.home.otpd(['profile', 'update', '--name', 'Ada L', '--company', ''])
    expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual({ name: 'Ada L', company: null })
  })
})

describe('profile password', () => {
  const newPasswordForm = { currentPassword: 'the old one', newPassword: 'the new password' }

  test('reads the current and the new password from two lines', async () => {
    cli.respond = () => Response.json({ data: { changed: true } })
    const input = 'the old one\nthe new password\n'
    const result = await cli.home.otpd(['profile', 'password', '--password-stdin'], { input })
    expect(result.exitCode).toBe(0)
    expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual(newPasswordForm)
    expect(result.stderr).toContain('Next: otpd login')
    expect(result.stdout + result.stderr).not.toMatch(/the old one|the new password/)
  })

  test('prompts for the new password twice', async () => {
    cli.respond = () => Response.json({ data: { changed: true } })
    const result = await cli.home.otpd(['profile', 'password'], {
      answers: ['the old one', 'the new password', 'the new password'],
    })
    expect(result.questions).toEqual([
      'Current password: ',
      'New password (12 characters or more): ',
      'Confirm new password: ',
    ])
    expect(JSON.parse(cli.server.requests[0]?.body ?? '')).toEqual(newPasswordForm)
    const differ = await cli.home.otpd(['profile', 'password'], {
      answers: ['the old one', 'short', 'another correct horse', 'another horse'],
    })
    expect(differ.exitCode).toBe(130)
    expect(differ.stderr).toContain('The passwords do not match. Type both again.')
    expect(cli.server.requests).toHaveLength(1)
  })

  test('prompts for another new password when the server refuses it', async () => {
    const fault = 'This is a common password, which attackers try first.'
    const error = {
      code: 'INVALID_ARGUMENT',
      message: fault,
      details: [{ path: 'newPassword', message: fault }],
    }
    cli.respond = ({ body }) =>
      body.includes('password1234')
        ? Response.json({ error }, { status: 400 })
        : Response.json({ data: { changed: true } })
    const refused = ['password1234', 'password1234']
    const result = await cli.home.otpd(['profile', 'password'], {
      answers: ['the old one', ...refused, 'the new password', 'the new password'],
    })
    expect(result.exitCode).toBe(0)
    expect(result.stderr).toContain(`${fault}\n`)
    expect(JSON.parse(cli.server.requests[1]?.body ?? '')).toEqual(newPasswordForm)
    const input = 'the old one\npassword1234\n'
    const inScript = await cli.home.otpd(['profile', 'password', '--password-stdin'], { input })
    expect(inScript).toMatchObject({ exitCode: 6, questions: [] })
  })

  test.each(['only one', 'a\nb\nc', '\nb'])('rejects input that is not two lines: %j', async (input) => {
    const result = await cli.home.otpd(['profile', 'password', '--password-stdin'], { input })
    expect(result.exitCode).toBe(2)
    expect(cli.server.requests).toEqual([])
  })

  test('names the flag when it cannot prompt', async () => {
    const result = await cli.home.otpd(['profile', 'password'], { input: '' })
    expect(result.exitCode).toBe(2)
    expect(result.stderr).toContain('--password-stdin')
  })
})
