import { expect, test } from 'bun:test'
import type { LogEntry } from '../../src/domain/model/log-entry.ts'
import { createOpenedEntries } from '../../src/store/events.ts'
import { createStore } from '../../src/store/store.ts'
import { openTestSqlite, registerShortIds } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

const entry = {
  type: 'otp.sent',
  developerId: 'dev_1',
  appId: null,
  requestId: null,
  phone: null,
  status: null,
  detail: null,
  at: 1,
} as const

test('an entry that is replaced while it is loaded is not kept', async () => {
  const { database, dispose } = await openTestSqlite()
  try {
    const { sqlite } = database
    if (!sqlite) throw new Error('SQLite keeps state in memory')
    const entries = createOpenedEntries(sqlite)
    const loaded: LogEntry = { ...entry, id: 'evt_1', seq: 1 }
    let loads = 0
    const read = (meanwhile: () => Promise<void>) =>
      entries.get([1], async () => {
        loads++
        await meanwhile()
        return [loaded]
      })
    await read(() => database.write(async () => sqlite.log.increment()))
    await read(async () => {})
    expect(loads).toBe(2)
    await read(async () => {})
    expect(loads).toBe(2)
  } finally {
    await dispose()
  }
})

test('an entry of a transaction that was rolled back is not kept for the next one with its number', async () => {
  const { database, dispose } = await openTestSqlite()
  try {
    await registerShortIds(database, 'dev_1')
    const store = createStore(database, { keys: testKeys })
    const appendAndList = (detail: string, end: () => void) =>
      store.write(async (tx) => {
        await tx.events.append([{ entry: { ...entry, detail } }])
        const [newest] = await tx.events.list('dev_1', { limit: 1 })
        end()
        return newest?.detail
      })
    const undone = appendAndList('undone', () => {
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(await appendAndList('kept', () => {})).toBe('kept')
  } finally {
    await dispose()
  }
})
