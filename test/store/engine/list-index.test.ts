import { Database as SqliteConnection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { ListChange } from '../../../src/store/engine/list-tail.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { openTestFile, openTestSqlite } from '../../helpers/databases.ts'

const added: ListChange = { add: ['numbers'], remove: [] }
const removed: ListChange = { add: [], remove: ['numbers'] }

const note = (database: Database, change: ListChange, key: string) =>
  database.write(async () => database.listIndex?.note(change, [1], key))

function keys(database: Database): string[] {
  const next = database.listIndex?.keys(1, ['numbers'], {}, false)
  const found: string[] = []
  for (let key = next?.(); key !== undefined; key = next?.()) found.push(key)
  return found
}

test('a process that missed changes, which were moved since, forgets its own', async () => {
  const { path, database, dispose } = await openTestSqlite({
    tailLimits: { entriesMax: 3, sliceKeysMax: 50 },
  })
  const other = openTestFile(path, { tailLimits: { entriesMax: Infinity, sliceKeysMax: 50 } })
  try {
    await note(database, added, 'a')
    expect(keys(other)).toEqual(['a'])
    await new Promise(setImmediate)
    await note(database, removed, 'a')
    await note(database, added, 'b')
    // The move runs in transactions of its own.
    for (let turn = 0; turn < 3; turn++) await database.write(async () => {})
    expect(keys(other)).toEqual(['b'])
    expect(keys(database)).toEqual(['b'])
  } finally {
    await other.close()
    await dispose()
  }
})

test('a write waits for one slice of a move at most, not for the move', async () => {
  const lists = 60
  const { path, database, dispose } = await openTestSqlite({
    tailLimits: { entriesMax: lists, sliceKeysMax: 50 },
  })
  const reader = new SqliteConnection(path, { readonly: true })
  const countMoved = () =>
    reader.query<{ moved: number }, []>('select count(*) as moved from list_chunks').get()?.moved ?? 0
  try {
    await database.write(async () => {
      for (let owner = 1; owner <= lists; owner++) database.listIndex?.note(added, [owner], 'a')
    })
    const movedAtOnce: number[] = []
    for (let moved = 0; moved < lists;) {
      await database.write(async () => {})
      movedAtOnce.push(countMoved() - moved)
      moved = countMoved()
    }
    // A slice is three lists of one key: finding each counts as twenty. One is moved before the write, another with it.
    expect(Math.max(...movedAtOnce)).toBeLessThanOrEqual(6)
  } finally {
    reader.close()
    await dispose()
  }
})
