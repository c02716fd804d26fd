import { afterEach, beforeEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import { createServerWorld } from '../../src/server/log-fault.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { openTestSqlite, registerShortIds } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { collectLog } from '../helpers/log.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'
import { testWorld } from '../helpers/world.ts'

let broken: string[]
let opened: Awaited<ReturnType<typeof openTestSqlite>>

beforeEach(async () => {
  broken = []
  const world = { ...testWorld, onBroken: (invariant: string) => void broken.push(invariant) }
  opened = await openTestSqlite({ world, listLimits: { recentMax: 3, sliceRows: 1 } })
})
afterEach(() => opened.dispose())

/** Changes rows as a fault of the server would: in its own transaction, and not in its memory. */
const runBehindMemory = (statement: string) =>
  opened.database.write(async (tx) => {
    // drizzle's `run` is SQLite's alone.
    await (tx as unknown as BunSQLiteDatabase).run(sql.raw(statement))
  })

const changeList = (list: number, key: string) =>
  opened.database.write(async () => opened.database.sqlite?.lists.change({ add: [list], remove: [] }, 1, key))

test('memory of the limiter that has not what its rows have is noticed at the next admission', async () => {
  const { database } = opened
  await registerShortIds(database, 'app_1')
  const admit = (at: number) =>
    database.write(async () =>
      database.sqlite?.admissions.insert([
        { subject: 'app_1', policy: 'otp-send', at, seq: 0, replacesLater: false, expiredUntil: 0 },
      ]),
    )
  await admit(1)
  await admit(2)
  expect(broken).toEqual([])
  await runBehindMemory('delete from admission_batches')
  await admit(3)
  expect(broken).toEqual(['limiter_follows_rows'])
})

test('memory of the lists that has not what their changes have is noticed at the next change', async () => {
  await changeList(1, 'a')
  await runBehindMemory('delete from list_changes')
  await changeList(1, 'b')
  expect(broken).toEqual(['lists_follow_changes'])
})

test('an entry that a move leaves in memory, and that no change has, is noticed before changes are deleted', async () => {
  const { database } = opened
  for (const key of ['a', 'b', 'c']) await changeList(1, key)
  // During the move, in a list that it does not move.
  await changeList(2, 'd')
  await runBehindMemory(`update list_changes set changes = '[]'`)
  for (let turn = 0; turn < 12; turn++) await database.write(async () => {})
  expect(broken).toEqual(['lists_follow_changes'])
})

test('a code with more attempts than its limit is noticed before it is written', async () => {
  const { database } = opened
  const store = createStore(database, { keys: testKeys, clock: testClock() })
  const request = createPendingRequest(0, { attempts: 6 })
  const decided = store.decide({
    preload: { first: () => ({}) },
    decide: () => ({ result: 0, changes: [{ kind: 'request', request, isNew: true }] }),
  })
  // The table refuses it too.
  await expect(decided).rejects.toThrow()
  expect(new Set(broken)).toEqual(new Set(['attempts_within_limit']))
})

test('a server logs and counts an invariant that does not hold, and goes on', async () => {
  const { log, text } = collectLog()
  const counted: string[] = []
  const world = createServerWorld(log, (invariant) => counted.push(invariant))
  world.onBroken('limiter_follows_rows', 'row 7 follows row 5 of the memory')
  expect(counted).toEqual(['limiter_follows_rows'])
  expect(await text()).toContain('an invariant does not hold')
})
