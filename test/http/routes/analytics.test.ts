import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService } from '../../helpers/otp-client.ts'
import type { TestDeveloper } from '../../helpers/service.ts'

type Day = { date: string; sent: number; verified: number; failed: number }
type Summary = Record<'applications' | 'otpRequests' | 'otpVerified' | 'successRate' | 'activeUsers', number>

const dayMs = 24 * 60 * 60 * 1000
const start = Date.parse('2026-11-20T12:00:00.000Z')

const { service, otp } = await createOtpTestService()
afterAll(() => service.dispose())

const summary = async (as: TestDeveloper) =>
  (await service.request<Summary>('GET', '/v1/analytics/summary', { as })).data
const series = async (as: TestDeveloper, query = '') =>
  (await service.request<Day[]>('GET', `/v1/analytics/timeseries${query}`, { as })).data
const activeDays = (days: Day[]) => days.filter(({ sent, verified, failed }) => sent + verified + failed > 0)

async function newCaller() {
  const developer = await service.createDeveloper()
  const application = await service.createApplication(developer)
  return {
    developer,
    application,
    verify: async (phone: string) =>
      otp.verifyRightCode(application, (await otp.sendOrThrow(application, { phone })).requestId),
  }
}

describe('GET /v1/analytics/summary', () => {
  test('is all zeros at first', async () => {
    expect(await summary(await service.createDeveloper())).toEqual({
      applications: 0,
      otpRequests: 0,
      otpVerified: 0,
      successRate: 0,
      activeUsers: 0,
    })
  })

  test('counts applications, requests, verified requests and phones', async () => {
    const { developer, application, verify } = await newCaller()
    await service.createApplication(developer)
    await verify('+14155552001')
    await verify('+14155552001')
    for (let i = 0; i < 4; i++) await otp.sendOrThrow(application)
    expect(await summary(developer)).toEqual({
      applications: 2,
      otpRequests: 6,
      otpVerified: 2,
      successRate: 33,
      activeUsers: 1,
    })
  })

  test.each([
    [1, 1, 100],
    [1, 3, 33],
    [2, 3, 67],
    [1, 8, 13],
    [0, 3, 0],
  ])('rounds %i of %i to %i percent', async (verified, requests, percent) => {
    const { developer, application, verify } = await newCaller()
    for (let i = 0; i < verified; i++) await verify('+14155552001')
    for (let i = verified; i < requests; i++) await otp.sendOrThrow(application)
    expect((await summary(developer)).successRate).toBe(percent)
  })

  test('counts a phone as active once, for 30 days after its last verification', async () => {
    service.clock.set(start)
    const { developer, verify } = await newCaller()
    await verify('+14155552001')
    await verify('+14155552002')
    service.clock.set(start + 10 * dayMs)
    await verify('+14155552001')
    expect((await summary(developer)).activeUsers).toBe(2)
    // 30 UTC days including today: the first day leaves the range 30 days later.
    service.clock.set(start + 29 * dayMs)
    expect((await summary(developer)).activeUsers).toBe(2)
    service.clock.set(start + 30 * dayMs)
    expect((await summary(developer)).activeUsers).toBe(1)
    service.clock.set(start + 40 * dayMs)
    expect((await summary(developer)).activeUsers).toBe(0)
    await verify('+14155552002')
    await verify('+14155552002')
    expect(await summary(developer)).toMatchObject({ activeUsers: 1, otpVerified: 5 })
  })

  test('excludes other developers', async () => {
    const { verify } = await newCaller()
    await verify('+14155552001')
    const { developer } = await newCaller()
    expect(await summary(developer)).toMatchObject({ applications: 1, otpRequests: 0, activeUsers: 0 })
  })
})

describe('GET /v1/analytics/timeseries', () => {
  test.each([
    ['', 30],
    ['?range=7d', 7],
    ['?range=30d', 30],
    ['?range=90d', 90],
  ])('with %j has every UTC day, oldest first, today last', async (query, days) => {
    service.clock.set(Date.parse('2027-03-01T23:59:59.999Z'))
    const { developer } = await newCaller()
    const buckets = await series(developer, query)
    expect(buckets).toHaveLength(days)
    expect(buckets.at(-1)).toEqual({ date: '2027-03-01', sent: 0, verified: 0, failed: 0 })
    const dates = buckets.map(({ date }) => Date.parse(date))
    expect(dates.every((date, index) => index === 0 || date - (dates[index - 1] ?? 0) === dayMs)).toBe(true)
    expect(buckets.find(({ date }) => date === '2027-02-28')).toBeDefined()
  })

  test('counts each event on the UTC day when it happened', async () => {
    service.clock.set(Date.parse('2026-12-31T23:59:59.000Z'))
    const { developer, application } = await newCaller()
    const [late, wrong, due] = [
      await otp.sendOrThrow(application),
      await otp.sendOrThrow(application),
      await otp.sendOrThrow(application),
    ]
    await otp.sendOrThrow(application).then(({ requestId }) => otp.verifyRightCode(application, requestId))
    service.clock.set(Date.parse('2027-01-01T00:00:00.000Z'))
    await otp.verifyRightCode(application, late.requestId)
    for (let i = 0; i < 5; i++) await otp.verifyWrongCode(application, wrong.requestId)
    service.clock.set(Date.parse('2027-01-02T00:00:00.000Z'))
    await service.services.otp.expireRequests()
    expect((await otp.get(application, due.requestId)).data.status).toBe('expired')
    expect(activeDays(await series(developer))).toEqual([
      { date: '2026-12-31', sent: 4, verified: 1, failed: 0 },
      { date: '2027-01-01', sent: 0, verified: 1, failed: 1 },
      { date: '2027-01-02', sent: 0, verified: 0, failed: 1 },
    ])
    service.clock.advance(5 * dayMs)
    expect(activeDays(await series(developer, '?range=7d')).map(({ date }) => date)).toEqual([
      '2027-01-01',
      '2027-01-02',
    ])
  })

  test('counts an exhausted request once, even after further attempts', async () => {
    const { developer, application } = await newCaller()
    const { requestId } = await otp.sendOrThrow(application)
    for (let i = 0; i < 8; i++) await otp.verifyWrongCode(application, requestId)
    expect((await series(developer, '?range=7d')).at(-1)).toMatchObject({ sent: 1, verified: 0, failed: 1 })
  })
})
