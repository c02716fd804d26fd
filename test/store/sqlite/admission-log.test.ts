import { afterEach, beforeEach, expect, test } from 'bun:test'
import { openTestFile, openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import type { Database } from '../../../src/store/engine/database.ts'

const subject = 'app_1'
const policy = 'otp-send'
const start = 1_800_000_000_000

let opened: Awaited<ReturnType<typeof openTestSqlite>>
beforeEach(async () => {
  opened = await openTestSqlite()
  await registerShortIds(opened.database, subject)
})
afterEach(() => opened.dispose())

const insert = (database: Database, at: number, expiredUntil = 0) =>
  database.sqlite?.admissions.insert([{ subject, policy, at, seq: 0, replacesLater: false, expiredUntil }])
const admit = (at: number, expiredUntil = 0) =>
  opened.database.write(async () => insert(opened.database, at, expiredUntil))
const times = (database: Database) => database.sqlite?.admissions.list().map(({ at }) => at)

test('admissions of a transaction that is rolled back are forgotten, and of the next one are not', async () => {
  const { database } = opened
  await admit(start)
  const failed = database.write(async () => {
    insert(database, start + 1)
    throw new Error('fails after it wrote')
  })
  await expect(failed).rejects.toThrow()
  await admit(start + 2)
  expect(times(database)).toEqual([start, start + 2])
})

test('admissions that a rolled back transaction replaced or forgot stay', async () => {
  const { database } = opened
  for (const later of [0, 10, 20]) await admit(start + later)
  const changes: ReadonlyArray<() => void> = [
    () => insert(database, start + 10),
    () => insert(database, start + 5),
    () => void database.sqlite?.admissions.forget(subject),
  ]
  const failed = database.write(async () => {
    for (const change of changes) change()
    throw new Error('fails after it wrote')
  })
  await expect(failed).rejects.toThrow()
  expect(times(database)).toEqual([start, start + 10, start + 20])
})

test('expired admissions are dropped in memory, and those of the window are not', async () => {
  const { database } = opened
  for (let count = 1; count <= 200; count++) await admit(start + count, start + count - 10)
  expect(times(database)?.length).toBeLessThan(100)
  expect(times(database)?.slice(-10)).toEqual(Array.from({ length: 10 }, (_, index) => start + 191 + index))
})

test('a process reads the admissions of the one before it, and those of another one', async () => {
  await admit(start)
  const other = openTestFile(opened.path)
  try {
    expect(times(other)).toEqual([start])
    await admit(start + 1)
    // A transaction notices what another process has committed.
    await other.write(async () => insert(other, start + 2))
    expect(times(other)).toEqual([start, start + 1, start + 2])
  } finally {
    await other.close()
  }
})

test('the newest row is never deleted, so that its number is not used again', async () => {
  const { database } = opened
  for (let count = 0; count < 3; count++) await admit(start + count)
  await database.write(async () => void database.sqlite?.admissions.deleteOldest(start + 1_000, 100))
  await admit(start + 2_000)
  expect(times(database)).toEqual([start + 2_000])
  // A process that starts now reads the row.
  const other = openTestFile(opened.path)
  expect(times(other)).toContain(start + 2_000)
  await other.close()
})
