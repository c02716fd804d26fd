import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, phone } from '../../helpers/otp-client.ts'
import type { TestApplication, TestCaller } from '../../helpers/service.ts'

type UserData = {
  environment: string
  id: string
  phone: string
  country: string | null
  verificationCount: number
  applications: string[]
  firstVerifiedAt: string
  lastVerifiedAt: string
}

const { service, otp, owner, application } = await createOtpTestService()
const sibling = await service.createApplication(owner)
afterAll(() => service.dispose())

const verify = async (as: TestApplication, number: string) =>
  otp.verifyRightCode(as, (await otp.sendOrThrow(as, { phone: number })).requestId)
const get = (number: string, as: TestCaller = owner) =>
  service.request<UserData>('GET', `/v1/users/${number}`, { as })
const list = (query = '', as: TestCaller = owner) =>
  service.request<UserData[]>('GET', `/v1/users${query}`, { as })
const keyAlone = ({ apiKey }: TestApplication) => ({ headers: { 'x-api-key': apiKey } })
const now = () => new Date(service.clock.now()).toISOString()

describe('GET /v1/users/:phoneNumber', () => {
  test('returns one identity for all applications of a developer', async () => {
    const firstVerifiedAt = now()
    await verify(sibling, phone)
    service.clock.advance(5_000)
    await verify(application, phone)
    await verify(application, phone)
    const response = await get(encodeURIComponent(phone))
    expect(response.status).toBe(200)
    expect(response.data).toEqual({
      id: expect.stringMatching(/^idn_/),
      environment: 'live',
      phone,
      country: 'US',
      verificationCount: 3,
      applications: [application.id, sibling.id],
      firstVerifiedAt,
      lastVerifiedAt: now(),
    })
  })

  test('finds a number in any notation', async () => {
    await verify(application, phone)
    for (const written of [
      phone,
      '%2B1%20415%20555%202671',
      '+1-415-555.2671',
      '0014155552671',
      '%2B1(415)5552671',
    ]) {
      expect((await get(written)).data.phone).toBe(phone)
    }
  })

  test('accepts only an API key, of any application of the developer', async () => {
    await verify(application, phone)
    const responses = [
      await get(phone, keyAlone(application)),
      await get(phone, keyAlone(sibling)),
      await get(phone),
    ]
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1)
  })

  test('responds 404 to an unverified number, and to an invalid one', async () => {
    await otp.sendOrThrow(application, { phone: '+14155558888' })
    for (const number of ['+14155558888', '+14155557777', 'rubbish', '14155552671', '%2F', '+1415']) {
      const response = await get(number)
      expect([response.status, response.error.code]).toEqual([404, 'NOT_FOUND'])
      const isPossible = number.startsWith('+141555')
      expect(response.error.message).toMatch(isPossible ? /^No user / : /^No phone can .* E\.164/)
    }
  })

  test('does not find numbers that only another developer verified', async () => {
    const stranger = await service.createDeveloper()
    const strangersApplication = await service.createApplication(stranger)
    await verify(application, '+14155556666')
    expect((await get('+14155556666', stranger)).status).toBe(404)
    expect((await get('+14155556666', keyAlone(strangersApplication))).status).toBe(404)
    await verify(strangersApplication, '+14155556666')
    const [ownResponse, strangersResponse] = [await get('+14155556666'), await get('+14155556666', stranger)]
    expect(strangersResponse.data.id).not.toBe(ownResponse.data.id)
    expect(strangersResponse.data).toMatchObject({
      verificationCount: 1,
      applications: [strangersApplication.id],
    })
  })

  test('keeps an identity whose application was deleted', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    await verify(own, phone)
    await service.request('DELETE', `/v1/applications/${own.id}`, { as: developer })
    expect((await get(phone, developer)).data).toMatchObject({ verificationCount: 1, applications: [own.id] })
  })
})

describe('GET /v1/users', () => {
  test('lists identities newest first, page by page, each once', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    const numbers = Array.from({ length: 5 }, (_, i) => `+1415555200${i}`)
    for (const number of numbers) await verify(own, number)
    // A later verification does not move an identity.
    await verify(own, numbers[0] ?? '')
    const first = await list('?limit=2', developer)
    const second = await list(`?limit=2&cursor=${first.pagination.nextCursor}`, developer)
    const third = await list(`?limit=2&cursor=${second.pagination.nextCursor}`, developer)
    const pages = [first, second, third].map(({ data }) => data.map((user) => user.phone))
    expect(pages.flat()).toEqual(numbers.toReversed())
    expect([first, second, third].map(({ pagination }) => pagination.nextCursor === null)).toEqual([
      false,
      false,
      true,
    ])
    expect(third.data[0]).toMatchObject({ verificationCount: 2, applications: [own.id] })
  })

  test('is empty at first', async () => {
    expect((await list('', await service.createDeveloper())).data).toEqual([])
  })
})

describe('GET /v1/users?phone', () => {
  test('finds the last digits of numbers among the newest 1,000, and a whole number among all', async () => {
    const developer = await service.createDeveloper()
    const live = await service.createApplication(developer)
    const staging = await service.createApplication(developer, { environment: 'test' })
    await verify(live, '+442079460123')
    await verify(staging, '+442079460123')
    await verify(live, '+14155550123')
    await verify(live, '+14155550199')
    const phones = async (query: string) =>
      (await list(`?${query}`, developer)).data.map(
        ({ phone: found, environment }) => `${found} ${environment}`,
      )
    const british = ['+442079460123 test', '+442079460123 live']
    expect(await phones('phone=0123')).toEqual(['+14155550123 live', ...british])
    for (const typed of [
      'phone=9460123',
      'phone=020 7946 0123',
      'phone=%2B442079460123',
      'phone=+442079460123',
    ])
      expect(await phones(typed)).toEqual(british)
    expect(await phones('phone=020 7946 0123&country=gb')).toEqual(british)
    expect(await phones('phone=0123&environment=test')).toEqual([british[0] ?? ''])
    expect(await phones('phone=%2B442079460123&environment=live')).toEqual([british[1] ?? ''])
    expect(await phones('phone=0777')).toEqual([])
    const first = await list('?phone=0123&limit=2', developer)
    expect(first.data.map(({ phone: found }) => found)).toEqual(['+14155550123', '+442079460123'])
    const rest = await list(`?phone=0123&limit=2&cursor=${first.pagination?.nextCursor}`, developer)
    expect([rest.data.map(({ environment }) => environment), rest.pagination?.nextCursor]).toEqual([
      ['live'],
      null,
    ])
    const whole = await list('?phone=%2B442079460123&limit=1', developer)
    const next = await list(
      `?phone=%2B442079460123&limit=1&cursor=${whole.pagination?.nextCursor}`,
      developer,
    )
    expect([...whole.data, ...next.data].map(({ environment }) => environment)).toEqual(['test', 'live'])
    expect(next.pagination?.nextCursor).toBeNull()
    expect((await list('?phone=0123', await service.createDeveloper())).data).toEqual([])
    for (const query of [
      '?phone=123',
      '?phone=abcd',
      '?phone=0123&country=GB',
      '?phone=0123&country=ZZ',
      '?country=GB',
    ])
      expect((await list(query, developer)).status).toBe(400)
  })

  test('goes on after 1,000 users that it looked through', async () => {
    const developer = await service.createDeveloper()
    const live = await service.createApplication(developer)
    await verify(live, '+442079460123')
    for (let from = 0; from < 1_000; from += 50)
      await Promise.all(Array.from({ length: 50 }, (_, n) => verify(live, `+4915${10_000_000 + from + n}`)))
    const first = await list('?phone=460123', developer)
    expect([first.data, first.pagination?.nextCursor]).toEqual([[], expect.any(String)])
    const rest = await list(`?phone=460123&cursor=${first.pagination?.nextCursor}`, developer)
    expect(rest.data.map(({ phone: found }) => found)).toEqual(['+442079460123'])
    expect(rest.pagination?.nextCursor).toBeNull()
  })
})
