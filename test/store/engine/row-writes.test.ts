import { getTableColumns, getTableName, sql, type SQL } from 'drizzle-orm'
import { expect, test } from 'bun:test'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { columnsOf, insertInto, type RowWrite, toJsonRows } from '../../../src/store/engine/row-writes.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

describeEachDatabase('writes of rows', (database, kind) => {
  /** Returns the writes that the stores prepare. */
  function listWrites() {
    const writes: Array<Pick<RowWrite<never>, 'columns' | 'sqlite' | 'postgres'>> = []
    const { read } = createStore(
      {
        ...database(),
        writeRows(executor, write) {
          writes.push(write)
          return database().writeRows(executor, write)
        },
      },
      { keys: testKeys },
    )
    expect(read.otpRequests).toBeDefined()
    return writes
  }

  test('are statements of this database', async () => {
    const writes = listWrites()
    expect(writes.length).toBeGreaterThan(15)
    if (kind === 'SQLite') {
      const connection = connect(':memory:', 0)
      migrateSqlite(connection, 0)
      for (const { sqlite } of writes) if (sqlite !== undefined) connection.prepare(sqlite)
      connection.close()
      return
    }
    await database().write(async (tx) => {
      const executor = tx as unknown as { execute(query: SQL): Promise<{ rows: unknown[] }> }
      for (const { postgres } of writes) {
        const { rows } = await executor.execute(sql.raw(`explain ${postgres.replace('$1', "'[]'")}`))
        // Prepared while tables are empty, it must not read all of a large one.
        if (kind === 'PostgreSQL') expect(JSON.stringify(rows)).not.toMatch(/Hash Join|Merge Join|Seq Scan/)
      }
    })
  })

  test('insert every column of their tables', () => {
    const { postgres, tables } = database()
    const columns = new Map<string, string[]>(
      [...Object.values(tables), ...(postgres ? [postgres.admissionTable] : [])].map((table) => [
        getTableName(table),
        Object.values(getTableColumns(table)).map(({ name }) => name),
      ]),
    )
    let inserts = 0
    for (const write of listWrites()) {
      const [, table = ''] = /^insert into (\w+)/.exec(write.sqlite ?? '') ?? []
      if (table === '') continue
      inserts++
      expect([table, write.columns.toSorted()]).toEqual([table, columns.get(table)?.toSorted() ?? []])
    }
    expect(inserts).toBeGreaterThan(10)
  })
})

test('a row that lacks a value is not written as JSON, and half of a surrogate pair is replaced', () => {
  type Bird = { id: string; name?: string }
  // As a row that was read from JSON may be.
  const birds = sqliteTable('birds', { id: text('id').notNull(), name: text('name').notNull() })
  const insert = insertInto(columnsOf<typeof birds, Bird>(birds, { name: ({ name }) => name as string }))
  expect(() => toJsonRows(insert, [{ id: 'a' }])).toThrow('a row lacks a value for name')
  expect(toJsonRows(insert, [{ id: 'a', name: 'x\ud800' }])).toBe('[{"id":"a","name":"x\ufffd"}]')
})
