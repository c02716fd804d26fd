import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, guardOffEnv, type LogData } from '../../helpers/otp-client.ts'

const {
  service,
  otp,
  owner: developer,
  application,
} = await createOtpTestService({ env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off' } })
/** Log entries of ten sends, oldest first. */
let all: string[]
beforeAll(async () => {
  for (let i = 0; i < 10; i++) {
    await otp.sendOrThrow(application)
    service.clock.advance(1_000)
  }
  all = await fetchIds('?limit=200')
})
afterAll(() => service.dispose())

const list = (query = '', as = developer) => service.request<LogData[]>('GET', `/v1/logs${query}`, { as })
const fetchIds = async (query: string, as = developer) => (await list(query, as)).data.map(({ id }) => id)

describe('GET /v1/logs', () => {
  test('lists the most recent entries, oldest first', async () => {
    const { data, pagination } = await list('?limit=4')
    expect(data.map(({ id }) => id)).toEqual(all.slice(6))
    expect(data.map(({ at }) => at)).toEqual(data.map(({ at }) => at).toSorted())
    expect(pagination.limit).toBe(4)
    expect(all).toHaveLength(10)
    expect((await list()).pagination).toEqual({ limit: 50, nextCursor: null })
  })

  test('writes an entry alike on the newest page, when it is read again, and on an older page', async () => {
    const newest = (await list('?limit=4')).data
    expect((await list('?limit=4')).data).toEqual(newest)
    const { nextCursor } = (await list('?limit=2')).pagination
    const older = await list(`?limit=2&cursor=${nextCursor}`)
    expect(older.data).toEqual(newest.slice(0, 2))
  })

  test('pages to older entries, each page oldest first, while new ones arrive', async () => {
    const own = await service.createDeveloper()
    const sender = await service.createApplication(own)
    for (let i = 0; i < 7; i++) await otp.sendOrThrow(sender)
    const before = await fetchIds('?limit=200', own)
    const pages: string[][] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = await list(`?limit=3${cursor && `&cursor=${cursor}`}`, own)
      pages.push(page.data.map(({ id }) => id))
      cursor = page.pagination.nextCursor
      await otp.sendOrThrow(sender)
    }
    expect(pages).toEqual([before.slice(4), before.slice(1, 4), before.slice(0, 1)])
  })

  test('reverses a page if the order is desc', async () => {
    expect(await fetchIds('?limit=4&order=desc')).toEqual(all.slice(6).toReversed())
    expect(await fetchIds('?limit=4&order=asc')).toEqual(all.slice(6))
  })

  test('returns the earliest entries after a given one', async () => {
    expect(await fetchIds(`?after=${all[2]}&limit=3`)).toEqual(all.slice(3, 6))
    expect(await fetchIds(`?after=${all[2]}&limit=3&order=desc`)).toEqual(all.slice(3, 6).toReversed())
    expect(await fetchIds(`?after=${all[9]}`)).toEqual([])
    expect(await fetchIds(`?after=${all[0]}`)).toEqual(all.slice(1))
  })

  test('followed by after has no gaps and no duplicates', async () => {
    const own = await service.createDeveloper()
    const sender = await service.createApplication(own)
    await otp.sendOrThrow(sender)
    const seen = await fetchIds('', own)
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 5 }, () => otp.sendOrThrow(sender)))
      seen.push(...(await fetchIds(`?limit=3&after=${seen.at(-1)}`, own)))
    }
    while (seen.length < 51) seen.push(...(await fetchIds(`?limit=3&after=${seen.at(-1)}`, own)))
    expect(seen).toEqual(await fetchIds('?limit=200', own))
  })

  test('rejects an absent entry, one of another developer, and one with a cursor', async () => {
    const stranger = await service.createDeveloper()
    const strangersApplication = await service.createApplication(stranger)
    const { requestId } = await otp.sendOrThrow(strangersApplication)
    const foreign = (await otp.listLogEntries(stranger, requestId))[0]?.id
    const cursor = (await list('?limit=1')).pagination.nextCursor
    const responses = [
      await list('?after=rubbish'),
      await list('?after=evt_00000000000000000000000000'),
      await list(`?after=${foreign}`),
      await list(`?after=${all[0]}&cursor=${cursor}`),
      await list('?order=sideways'),
      await list('?cursor=rubbish'),
      await list('?limit=0'),
      await list('?limit=201'),
    ]
    expect(responses.map(({ status, error }) => `${status} ${error.code}`)).toEqual(
      responses.map(() => '400 INVALID_ARGUMENT'),
    )
    expect(responses[5]?.error.reason).toBe('CURSOR_INVALID')
  })

  test('filters by application, and does not find one of another developer', async () => {
    const other = await service.createApplication(developer)
    const { requestId } = await otp.sendOrThrow(other)
    expect((await list(`?appId=${other.id}`)).data.map((entry) => entry.requestId)).toEqual([requestId])
    expect((await list(`?appId=${other.id}&after=${all[3]}`)).data).toHaveLength(1)
    const stranger = await service.createDeveloper()
    for (const appId of [other.id, 'rubbish'])
      expect((await list(`?appId=${appId}`, stranger)).error.message).toBe('No application with this id.')
    all = await fetchIds('?limit=200')
  })

  test('never contains a code', async () => {
    const { requestId } = await otp.sendOrThrow(application)
    await otp.verifyWrongCode(application, requestId)
    await otp.verifyRightCode(application, requestId)
    const entries = await otp.listLogEntries(developer, requestId)
    expect(entries.map(({ type }) => type)).toEqual(['otp.sent', 'otp.attempt_failed', 'otp.verified'])
    expect(Object.keys(entries[0] ?? {})).toEqual([
      'id',
      'type',
      'appId',
      'requestId',
      'phone',
      'status',
      'detail',
      'at',
    ])
    expect(JSON.stringify(entries)).not.toContain(`"${await otp.getCode(requestId)}"`)
  })
})
