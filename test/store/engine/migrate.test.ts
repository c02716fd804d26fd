import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import {
  readAppliedMigrations,
  MigrationError,
  migrateSqlite,
  sqliteMigrations,
} from '../../../src/store/engine/migrate.ts'

const readSchema = (connection: Database) => ({
  schema: connection.query('select type, name, sql from sqlite_schema order by name').all(),
  applied: readAppliedMigrations(connection),
})

/** Everything before the statement, and nothing of it. */
const splitStatements = (sql: string) => sql.split(/;\s*$/m).filter((statement) => statement.trim() !== '')

describe('a migration of which a statement fails', () => {
  test.each(sqliteMigrations.map((migration, index) => [migration.name, index] as const))(
    '%s: leaves the schema before it, whichever statement it is',
    (name, index) => {
      const migration = sqliteMigrations[index]
      const statements = splitStatements(migration?.sql ?? '')
      expect(statements.length).toBeGreaterThan(0)
      for (let done = 0; done <= statements.length; done++) {
        const connection = new Database(':memory:')
        migrateSqlite(connection, 0, sqliteMigrations.slice(0, index))
        const before = readSchema(connection)
        const sql = [...statements.slice(0, done), 'select no_such_function()'].join(';\n')
        const broken = [...sqliteMigrations.slice(0, index), { name, sql }]
        expect(() => migrateSqlite(connection, 0, broken)).toThrow(MigrationError)
        expect(readSchema(connection)).toEqual(before)
        migrateSqlite(connection, 0)
        expect(readAppliedMigrations(connection)).toHaveLength(sqliteMigrations.length)
        connection.close()
      }
    },
  )

  test('takes the whole upgrade back, the migrations before it too', () => {
    const connection = new Database(':memory:')
    const broken = [...sqliteMigrations, { name: '9999_broken', sql: 'drop table no_such_table' }]
    expect(() => migrateSqlite(connection, 0, broken)).toThrow('no such table')
    expect(readSchema(connection)).toEqual({ schema: [], applied: [] })
    connection.close()
  })
})

test("another program's database is not taken for an empty one", () => {
  const connection = new Database(':memory:')
  connection.run('create table songs (title text)')
  expect(() => migrateSqlite(connection, 0)).toThrow(MigrationError)
  connection.close()
})
