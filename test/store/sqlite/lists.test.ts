import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { Database } from '../../../src/store/engine/database.ts'
import type { ListChange, ListKey, ListRange } from '../../../src/store/engine/sqlite-state.ts'
import { openTestFile, openTestSqlite } from '../../helpers/databases.ts'

const added: ListChange = { add: [1], remove: [] }
const removed: ListChange = { add: [], remove: [1] }

const change = (database: Database, listChange: ListChange, key: string) =>
  database.write(async () => database.sqlite?.lists.change(listChange, 1, key))
const keys = (database: Database) => database.sqlite?.lists.page({ owners: [1], lists: [1] }, {}, 10)

test('a process that missed changes, which were moved since, forgets its own', async () => {
  const { path, database, dispose } = await openTestSqlite({ listLimits: { recentMax: 3, sliceRows: 50 } })
  const other = openTestFile(path, { listLimits: { recentMax: Infinity, sliceRows: 50 } })
  try {
    await change(database, added, 'a')
    expect(keys(other)).toEqual(['a'])
    await new Promise(setImmediate)
    await change(database, removed, 'a')
    await change(database, added, 'b')
    await change(database, added, 'c')
    // The move runs in transactions of its own.
    for (let turn = 0; turn < 4; turn++) await database.write(async () => {})
    await other.write(async () => {})
    expect(keys(other)).toEqual(['c', 'b'])
    expect(keys(database)).toEqual(['c', 'b'])
  } finally {
    await other.close()
    await dispose()
  }
})

test('a page that was read before entries were moved does not hide them after it, in any process', async () => {
  const { path, database, dispose } = await openTestSqlite({ listLimits: { recentMax: 3, sliceRows: 50 } })
  const other = openTestFile(path, { listLimits: { recentMax: Infinity, sliceRows: 50 } })
  try {
    expect([keys(database), keys(other)]).toEqual([[], []])
    for (const key of ['a', 'b', 'c']) await change(database, added, key)
    for (let turn = 0; turn < 4; turn++) await database.write(async () => {})
    await other.write(async () => {})
    expect(database.sqlite?.lists.page({ owners: [1], lists: [1] }, { before: 'c' }, 10)).toEqual(['b', 'a'])
    expect([keys(database), keys(other)]).toEqual([
      ['c', 'b', 'a'],
      ['c', 'b', 'a'],
    ])
  } finally {
    await other.close()
    await dispose()
  }
})

test('removed entries are held in memory, skipped in pages, and moved to the table with the new ones', async () => {
  const { path, database, dispose } = await openTestSqlite({ listLimits: { recentMax: 9, sliceRows: 2 } })
  const connection = new SqliteConnection(path, { readonly: true })
  const stored = () => connection.query('select key from lists order by key').values().flat().join('')
  const finishMove = async () => {
    for (let turn = 0; turn < 16; turn++) await database.write(async () => {})
  }
  const page = (range: ListRange, limit: number) =>
    database.sqlite?.lists.page({ owners: [1], lists: [1] }, range, limit).join('')
  try {
    for (const key of 'abcdefghi') await change(database, added, key)
    await finishMove()
    expect(stored()).toBe('abcdefghi')
    for (const key of 'ihgfeb') await change(database, removed, key)
    expect(stored()).toBe('abcdefghi')
    expect([page({}, 2), page({ before: 'i' }, 1), page({ after: 'a' }, 1), page({}, 9)]).toEqual([
      'dc',
      'd',
      'c',
      'dca',
    ])
    // It is in the table still.
    await change(database, added, 'g')
    expect([page({}, 2), page({}, 9)]).toEqual(['gd', 'gdca'])
    await change(database, removed, 'g')
    // Entries that the table never had.
    for (const key of 'xy') await change(database, added, key)
    for (const key of 'yx') await change(database, removed, key)
    await change(database, added, 'z')
    await finishMove()
    expect(stored()).toBe('acdz')
    expect(page({}, 9)).toBe('zdca')
  } finally {
    connection.close()
    await dispose()
  }
})

test('a process that removes an entry of another one, and then reads the list for the first time, does not find it', async () => {
  const { path, database, dispose } = await openTestSqlite()
  const other = openTestFile(path)
  try {
    await change(database, added, 'a')
    await other.write(async () => {
      other.sqlite?.lists.change(removed, 1, 'a')
      expect(keys(other)).toEqual([])
    })
    expect(keys(other)).toEqual([])
    expect(keys(database)).toEqual([])
  } finally {
    await other.close()
    await dispose()
  }
})

test('a write waits for one slice of a move at most, not for the move', async () => {
  const rows = 60
  const { path, database, dispose } = await openTestSqlite({ listLimits: { recentMax: rows, sliceRows: 3 } })
  const reader = new SqliteConnection(path, { readonly: true })
  const countMoved = () =>
    reader.query<{ moved: number }, []>('select count(*) as moved from lists').get()?.moved ?? 0
  try {
    await database.write(async () => {
      for (let owner = 1; owner <= rows; owner++) database.sqlite?.lists.change(added, owner, 'a')
    })
    const movedAtOnce: number[] = []
    for (let moved = 0; moved < rows;) {
      await database.write(async () => {})
      movedAtOnce.push(countMoved() - moved)
      moved = countMoved()
    }
    // One slice is moved before the write, another with it.
    expect(Math.max(...movedAtOnce)).toBeLessThanOrEqual(6)
  } finally {
    reader.close()
    await dispose()
  }
})

test('an entry that was added while the move ran is found after a crash', async () => {
  const options = { listLimits: { recentMax: 4, sliceRows: 1 } }
  const { path, database, dispose } = await openTestSqlite(options)
  try {
    for (const key of ['b', 'c', 'd', 'e']) await change(database, added, key)
    await change(database, added, 'a')
    await change(database, removed, 'c')
    for (let turn = 0; turn < 8; turn++) await database.write(async () => {})
    // Another process has only what the file has, as this one after a crash.
    const other = openTestFile(path)
    expect(keys(other)).toEqual(['e', 'd', 'b', 'a'])
    await other.close()
  } finally {
    await dispose()
  }
})

test('few lists and many lists of many owners are merged in the same order, in both directions', async () => {
  const { database, dispose } = await openTestSqlite({ listLimits: { recentMax: 100, sliceRows: 50 } })
  try {
    const all: number[] = []
    for (let round = 0; round < 20; round++) {
      await database.write(async () => {
        for (let owner = 1; owner <= 10; owner++) {
          const key = round * 10 + ((owner * 7) % 10)
          all.push(key)
          database.sqlite?.lists.change({ add: [1 + (key % 3)], remove: [] }, owner, key)
        }
      })
    }
    const read = (owners: number[], lists: number[], range: ListRange) =>
      database.sqlite?.lists.page({ owners, lists }, range, 7)
    const expected = (owners: number[], lists: number[], isListed: (key: number) => boolean) =>
      all
        .filter(
          (key, index) => owners.includes(1 + (index % 10)) && lists.includes(1 + (key % 3)) && isListed(key),
        )
        .toSorted((a, b) => a - b)
    for (const owners of [[1], [3, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]) {
      for (const lists of [[1], [2, 3], [1, 2, 3]]) {
        const below: ListKey[] = expected(owners, lists, (key) => key < 133).toReversed()
        expect(read(owners, lists, { before: 133 })).toEqual(below.slice(0, 7))
        const above: ListKey[] = expected(owners, lists, (key) => key > 41)
        expect(read(owners, lists, { after: 41 })).toEqual(above.slice(0, 7))
      }
    }
    expect(read([], [1], {})).toEqual([])
    expect(read([11], [1], {})).toEqual([])
  } finally {
    await dispose()
  }
})
