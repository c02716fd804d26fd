import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createConversation, page } from '../harness.ts'

let talk: ReturnType<typeof createConversation>

beforeEach(() => {
  talk = createConversation()
})

afterEach(() => talk.end())

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
  limits: { projects: 10, applications: 20, sendPerMinute: 60, verifyPerMinute: 0 },
  createdAt: at,
  updatedAt: at,
}

describe('user', () => {
  test('list tells how often and when last', async () => {
    talk.answer = () => page(user, { ...user, verificationCount: 1 })
    const { stdout } = await talk.home.otpd(['users', 'ls'], { columns: 120 })
    expect(Bun.stripANSI(stdout)).toMatch(/\+14155550100 +US +3 times +30 s ago +2 +vpi_\w+\n.* once /)
  })

  test('list of nothing says what to do', async () => {
    talk.answer = () => page()
    expect((await talk.home.otpd(['user', 'list'])).stdout).toContain('otpd otp send')
  })

  test('get asks for the phone as it was typed', async () => {
    talk.answer = () => Response.json({ data: user })
    const { stdout } = await talk.home.otpd(['user', 'get', '+14155550100'])
    expect(talk.server.asked[0]?.path).toBe('/v1/users/%2B14155550100')
    expect(stdout).toMatch(/ {2}By +app_1, app_2\n$/)
  })
})

describe('profile', () => {
  test('get tells what the plan allows', async () => {
    talk.answer = () => Response.json({ data: me })
    const { stdout } = await talk.home.otpd(['profile', 'get'])
    expect(stdout).toMatch(/Allows +10 projects, 20 applications\n/)
    expect(stdout).toMatch(/Each sends +60 a minute\n {2}Each verifies +without limit\n/)
  })

  test('update sends what was named, and what is empty as null', async () => {
    talk.answer = () => Response.json({ data: me })
    await talk.home.otpd(['profile', 'update', '--name', 'Ada L', '--company', ''])
    expect(JSON.parse(talk.server.asked[0]?.body ?? '')).toEqual({ name: 'Ada L', company: null })
  })
})

describe('profile password', () => {
  const wanted = { currentPassword: 'the old one', newPassword: 'the new password' }

  test('takes the current and the new one from two lines', async () => {
    talk.answer = () => Response.json({ data: { changed: true } })
    const input = 'the old one\nthe new password\n'
    const ran = await talk.home.otpd(['profile', 'password', '--password-stdin'], { input })
    expect(ran.exitCode).toBe(0)
    expect(JSON.parse(talk.server.asked[0]?.body ?? '')).toEqual(wanted)
    expect(ran.stderr).toContain('Next: otpd login')
    expect(ran.stdout + ran.stderr).not.toMatch(/the old one|the new password/)
  })

  test('asks for the new one twice', async () => {
    talk.answer = () => Response.json({ data: { changed: true } })
    const ran = await talk.home.otpd(['profile', 'password'], {
      answers: ['the old one', 'the new password', 'the new password'],
    })
    expect(ran.questions).toEqual([
      'Current password: ',
      'New password, 12 characters or more: ',
      'The same again: ',
    ])
    expect(JSON.parse(talk.server.asked[0]?.body ?? '')).toEqual(wanted)
    const differ = await talk.home.otpd(['profile', 'password'], {
      answers: ['the old one', 'short', 'another correct horse', 'another horse'],
    })
    expect(differ.exitCode).toBe(2)
    expect(talk.server.asked).toHaveLength(1)
  })

  test.each(['only one', 'a\nb\nc', '\nb'])('refuses what is not two lines: %j', async (input) => {
    const ran = await talk.home.otpd(['profile', 'password', '--password-stdin'], { input })
    expect(ran.exitCode).toBe(2)
    expect(talk.server.asked).toEqual([])
  })

  test('names the flag where there is nobody to ask', async () => {
    const ran = await talk.home.otpd(['profile', 'password'], { input: '' })
    expect(ran.exitCode).toBe(2)
    expect(ran.stderr).toContain('--password-stdin')
  })
})
