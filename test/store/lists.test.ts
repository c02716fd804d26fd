import { Database as SqliteConnection } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { erasedPhone } from '../../src/domain/model/pseudonyms.ts'
import type { OtpRequest, OtpStatus } from '../../src/domain/model/request.ts'
import type { Store } from '../../src/domain/store/store.ts'
import type { LogType } from '../../src/shared/event-kinds.ts'
import { createStore } from '../../src/store/store.ts'
import {
  describeEachDatabase,
  openTestFile,
  openTestSqlite,
  registerDeletedApplications,
  registerShortIds,
} from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'

const start = 1_800_000_000_000
const developers = ['dev_1', 'dev_2']
const apps = ['app_1', 'app_2']
const owned = developers.map((developerId, index) => ({ developerId, appId: apps[index] ?? '' }))
const ids = (rows: Array<{ id: string }>) => rows.map(({ id }) => id)

const logEntry = (type: LogType, phone: string | null = null) => ({
  entry: {
    type,
    developerId: 'dev_1',
    appId: 'app_1',
    requestId: null,
    phone,
    status: null,
    detail: null,
    at: start,
  },
})

describeEachDatabase('lists', (database) => {
  let store: Store
  beforeAll(async () => {
    store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), ...developers, ...apps, 'prj')
    await registerDeletedApplications(database(), owned)
    const insert = (id: string, overrides: Partial<OtpRequest>) =>
      createPendingRequest(start, {
        id,
        developerId: 'dev_1',
        appId: 'app_1',
        projectId: 'prj',
        ...overrides,
      })
    await store.write(async (tx) => {
      tx.otpRequests.insert([
        insert('otp_1', {}),
        insert('otp_2', { expiresAt: start + 1 }),
        insert('otp_3', { status: 'canceled' }),
        insert('otp_4', { developerId: 'dev_2', appId: 'app_2' }),
        insert('otp_5', {}),
      ])
    })
  })
  const list = (
    status: OtpStatus | undefined,
    now = start,
    query: { appId?: string; before?: string } = {},
  ) => store.read.otpRequests.list({ developerId: 'dev_1', status, now, limit: 50, ...query })

  test('of requests follow a change of the status', async () => {
    expect(ids(await list('pending'))).toEqual(['otp_5', 'otp_2', 'otp_1'])
    await store.write(async (tx) => {
      const newest = await tx.otpRequests.find('otp_5')
      if (newest) tx.otpRequests.update([{ request: { ...newest, status: 'expired' } }])
    })
    expect(ids(await list('pending'))).toEqual(['otp_2', 'otp_1'])
    expect(ids(await list('expired'))).toEqual(['otp_5'])
    expect(ids(await list(undefined))).toEqual(['otp_5', 'otp_3', 'otp_2', 'otp_1'])
  })

  test('count pending requests past their expiry as expired, in the order of all', async () => {
    expect(ids(await list('expired', start + 1))).toEqual(['otp_5', 'otp_2'])
    expect(ids(await list('pending', start + 1))).toEqual(['otp_1'])
    expect(ids(await list('expired', start + 1, { before: 'otp_5' }))).toEqual(['otp_2'])
  })

  test("of another developer's application are empty", async () => {
    expect(await list(undefined, start, { appId: 'app_2' })).toEqual([])
    expect(await list('expired', start + 9_999_999, { appId: 'app_2' })).toEqual([])
    await store.write((tx) => tx.events.append([logEntry('otp.sent')]))
    expect(await store.read.events.list('dev_2', { appId: 'app_1', limit: 50 })).toEqual([])
    expect(await store.read.events.list('dev_1', { appId: 'app_1', limit: 50 })).toHaveLength(1)
  })

  test('read in a transaction have its own changes, which end with it', async () => {
    const undone = store.write(async (tx) => {
      const query = { developerId: 'dev_1', status: 'failed', now: start, limit: 50 } as const
      const request = await tx.otpRequests.lock('otp_1')
      if (!request) throw new Error('no request')
      tx.otpRequests.update([{ request: { ...request, status: 'failed', failureReason: 'blocked' } }])
      expect(ids(await tx.otpRequests.list(query))).toEqual(['otp_1'])
      expect(ids(await tx.otpRequests.list({ ...query, status: 'pending' }))).toEqual(['otp_2'])
      throw new Error('undone')
    })
    expect(await undone.catch((error: unknown) => String(error))).toContain('undone')
    expect(ids(await list('pending'))).toEqual(['otp_2', 'otp_1'])
    expect(ids(await list('failed'))).toEqual([])
  })

  test('of log entries have those of every type asked for, in both directions', async () => {
    const types = ['otp.failed', 'otp.expired'] as const
    await store.write((tx) =>
      tx.events.append(
        ['otp.failed', 'otp.sent', 'otp.expired', 'otp.failed'].map((type) => logEntry(type as LogType)),
      ),
    )
    const first = (await store.read.events.list('dev_1', { limit: 4 })).at(-1)?.seq ?? 0
    const query = { types, limit: 2 }
    const seqs = (rows: Array<{ seq: number }>) => rows.map(({ seq }) => seq - first)
    expect(seqs(await store.read.events.list('dev_1', query))).toEqual([3, 2])
    expect(seqs(await store.read.events.list('dev_1', { ...query, beforeSeq: first + 2 }))).toEqual([0])
    expect(seqs(await store.read.events.list('dev_1', { ...query, afterSeq: first }))).toEqual([2, 3])
  })
})

test('an entry that was read is read again after another process erased its phone', async () => {
  const { path, database, dispose } = await openTestSqlite()
  const host = openTestFile(path)
  try {
    await registerShortIds(database, ...developers, ...apps)
    await registerDeletedApplications(database, owned)
    const store = createStore(database, { keys: testKeys })
    const seq = await store.write((tx) => tx.events.append([logEntry('otp.sent', '+14155552671')]))
    const read = async () => (await store.read.events.list('dev_1', { limit: 1 }))[0]
    const entry = await read()
    expect(entry?.phone).toBe('+14155552671')
    await new Promise(setImmediate)
    expect(await read()).toBe(entry)
    await createStore(host, { keys: testKeys }).write((tx) =>
      tx.retention.replaceInEvent(seq, erasedPhone, (payload) => payload),
    )
    await new Promise(setImmediate)
    expect((await read())?.phone).toBe(erasedPhone)
  } finally {
    await host.close()
    await dispose()
  }
})

test('a request is recorded for its lists when it is made, closed or deleted, and at no other change', async () => {
  const { path, database, dispose } = await openTestSqlite()
  const file = new SqliteConnection(path, { readonly: true })
  try {
    await registerShortIds(database, 'prj', ...developers, ...apps)
    const store = createStore(database, { keys: testKeys })
    const ids = { developerId: 'dev_1', appId: 'app_1', projectId: 'prj', id: 'otp_1' }
    await store.write(async (tx) => tx.otpRequests.insert([createPendingRequest(start, ids)]))
    const update = (changes: Partial<OtpRequest>) =>
      store.decide({
        preload: { first: () => ({ request: 'otp_1' }) },
        decide(rows) {
          const request = rows.request('otp_1')
          return {
            result: undefined,
            changes: request ? [{ kind: 'request', request: { ...request, ...changes }, isNew: false }] : [],
          }
        },
      })
    const recorded = () =>
      file.query<{ changes: string }, []>('select changes from list_changes').all().length
    await update({ deliveryStatus: 'sent' })
    expect(recorded()).toBe(1)
    await update({ status: 'canceled' })
    expect(recorded()).toBe(2)
    await update({ deliveryStatus: 'delivered' })
    expect(recorded()).toBe(2)
  } finally {
    file.close()
    await dispose()
  }
})
