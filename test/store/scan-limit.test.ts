import { beforeAll, expect, test } from 'bun:test'
import { recordEvent, createLogService } from '../../src/domain/log/events.ts'
import { loadEventIds } from '../../src/store/event-ids.ts'
import { createLogStreams, logStart } from '../../src/domain/log/stream.ts'
import { createIds } from '../../src/domain/model/ids.ts'
import type { Developer } from '../../src/domain/model/developer.ts'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { scanRowsMax } from '../../src/domain/model/pagination.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'
import { testKeys } from '../helpers/keys.ts'

const start = 1_800_000_000_000
const newId = createIds({ now: () => start }, (bytes) => crypto.getRandomValues(bytes))
const appId = newId('app')
const otherAppId = newId('app')

const createRequest = (developerId: string, id: string) =>
  createPendingRequest(start, { id, developerId, appId: developerId === 'mine' ? appId : otherAppId })

/** One canceled request per developer, followed by more other requests than two scans cover. */
const rowCount = 2 * scanRowsMax + 10

describeEachDatabase('a page of a filtered list', (database) => {
  let store: Store
  let canceled: OtpRequest
  beforeAll(async () => {
    store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'mine', 'theirs', 'prj', appId, otherAppId)
    canceled = createRequest('mine', newId('otp'))
    await store.write(async (tx) => {
      for (let i = 0; i < rowCount; i++) {
        const request = i === 0 ? canceled : createRequest('mine', newId('otp'))
        await tx.otpRequests.insert(request)
        await recordEvent(tx, newId, i === 0 ? 'otp.canceled' : 'otp.sent', request, start)
        if (i === 0) await tx.otpRequests.close(request.id, { status: 'canceled' }, start)
      }
      await recordEvent(tx, newId, 'otp.expired', canceled, start)
      for (let i = 0; i <= scanRowsMax; i++) {
        const request = createRequest('theirs', newId('otp'))
        await tx.otpRequests.insert(request)
        await recordEvent(tx, newId, 'otp.sent', request, start)
      }
    })
  }, 300_000)

  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the lists read nothing else of a developer
  const ownDeveloper = { id: 'mine' } as Developer

  test.each([undefined, appId])(
    'scans a limited number of rows and has a cursor to continue (application %p)',
    async (app) => {
      const logs = createLogService({ store, yieldToRequests: () => Promise.resolve() })
      const pages: string[][] = []
      let cursor: string | undefined
      do {
        const filter = {
          appId: app,
          types: ['otp.canceled'] as const,
          limit: 50,
          cursor,
          order: 'asc' as const,
        }
        const page = await logs.list(ownDeveloper, filter)
        pages.push(page.items.map(({ requestId }) => requestId ?? ''))
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      expect(pages).toEqual([[], [], [canceled.id]])
    },
  )

  test('has no cursor when fewer rows are left than a scan covers', async () => {
    const { scanLimits: windows, otpRequests } = store.read
    const owner = { developerId: 'mine' }
    const first = await windows.forRequests(owner)
    const second = await windows.forRequests(owner, first?.key)
    expect(second?.developerId).toBe('mine')
    expect(await windows.forRequests(owner, second?.key)).toBeUndefined()
    const query = { ...owner, status: 'canceled' as const, now: start, limit: 50 }
    expect(await otpRequests.list({ ...query, from: second?.key })).toEqual([])
    expect((await otpRequests.list({ ...query, before: second?.key })).map(({ id }) => id)).toEqual([
      canceled.id,
    ])
  })

  test.each([undefined, appId])('scans forward in equally limited steps (application %p)', async (app) => {
    let pauses = 0
    const logs = createLogService({ store, yieldToRequests: () => Promise.resolve(void pauses++) })
    const filter = { appId: app, types: ['otp.expired'] as const, limit: 50, order: 'asc' as const }
    const { items, nextCursor } = await logs.list(ownDeveloper, {
      ...filter,
      after: (await loadEventIds(database(), database().read)).encode(start, 1),
    })
    expect(items.map(({ type, requestId }) => [type, requestId])).toEqual([['otp.expired', canceled.id]])
    expect([nextCursor, pauses]).toEqual([null, 2])
  })

  test.each([undefined, appId])('and so does a stream (application %p)', async (app) => {
    const streams = createLogStreams({ store, clock: testClock() })
    const filter = { appId: app, types: ['otp.expired'] as const, after: logStart }
    const stream = await streams.open(
      { ...ownDeveloper, tokenExpiresAt: Infinity, revalidate: async () => {} },
      filter,
    )
    const reads: Array<[number, boolean]> = []
    for (let full = true; full;) {
      const { entries, hasMore: isFull, position } = await stream.read()
      reads.push([entries.length, isFull])
      full = isFull
      if (!full) expect(await store.read.events.findSeq('mine', position)).toBeGreaterThan(2 * scanRowsMax)
    }
    expect(reads).toEqual([
      [0, true],
      [0, true],
      [1, false],
    ])
    stream.close()
  })

  test("of another developer's application is empty, without a cursor", async () => {
    const logs = createLogService({ store, yieldToRequests: () => Promise.resolve() })
    const page = await logs.list(ownDeveloper, { appId: otherAppId, limit: 50, order: 'asc' })
    expect(page).toEqual({ items: [], limit: 50, nextCursor: null })
    const later = {
      appId: otherAppId,
      after: (await loadEventIds(database(), database().read)).encode(start, 1),
      limit: 50,
      order: 'asc' as const,
    }
    expect(await logs.list(ownDeveloper, later)).toEqual({ items: [], limit: 50, nextCursor: null })
    expect(await store.read.events.list('mine', { appId: otherAppId, limit: 50 })).toEqual([])
    expect(
      await store.read.otpRequests.list({ developerId: 'mine', appId: otherAppId, now: start, limit: 50 }),
    ).toEqual([])
  })
})
