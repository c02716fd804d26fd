import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresMigrations, sqliteMigrations } from '../../../src/store/engine/migration-files.ts'
import { MigrationError } from '../../../src/store/engine/migrations.ts'
import { readAppliedMigrations, migrateSqlite } from '../../../src/store/sqlite/migrate.ts'

const readSchema = (connection: Database) => ({
  schema: connection.query('select type, name, sql from sqlite_schema order by name').all(),
  applied: readAppliedMigrations(connection),
})

/** Splits a migration into its statements. */
const splitStatements = (sql: string) => sql.split(/;\s*$/m).filter((statement) => statement.trim() !== '')

describe('a migration with a failing statement', () => {
  test.each(sqliteMigrations.map((migration, index) => [migration.name, index] as const))(
    '%s: leaves the previous schema, whichever statement fails',
    (name, index) => {
      const migration = sqliteMigrations[index]
      const statements = splitStatements(migration?.sql ?? '')
      expect(statements.length).toBeGreaterThan(0)
      const connection = new Database(':memory:')
      migrateSqlite(connection, 0, sqliteMigrations.slice(0, index))
      const before = readSchema(connection)
      for (let done = 0; done <= statements.length; done++) {
        const sql = [...statements.slice(0, done), 'select no_such_function()'].join(';\n')
        const broken = [...sqliteMigrations.slice(0, index), { name, sql }]
        expect(() => migrateSqlite(connection, 0, broken)).toThrow(MigrationError)
        expect(readSchema(connection)).toEqual(before)
      }
      migrateSqlite(connection, 0)
      expect(readAppliedMigrations(connection)).toHaveLength(sqliteMigrations.length)
      connection.close()
    },
  )

  test('rolls back the whole upgrade, including the migrations before it', () => {
    const connection = new Database(':memory:')
    const broken = [...sqliteMigrations, { name: '9999_broken', sql: 'drop table no_such_table' }]
    expect(() => migrateSqlite(connection, 0, broken)).toThrow('no such table')
    expect(readSchema(connection)).toEqual({ schema: [], applied: [] })
    connection.close()
  })
})

test("another program's database is not treated as empty", () => {
  const connection = new Database(':memory:')
  connection.run('create table songs (title text)')
  expect(() => migrateSqlite(connection, 0)).toThrow(MigrationError)
  connection.close()
})

describe('adding a migration file', () => {
  const root = join(import.meta.dir, '../../..')

  /** Copies the migrations with the code that reads them, and adds a file for each database. */
  function copyWithMigration(file: string) {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-test-'))
    for (const path of ['migrations', 'src/store/engine', 'src/domain/model', 'src/shared']) {
      cpSync(join(root, path), join(folder, path), { recursive: true })
    }
    for (const dialect of ['sqlite', 'postgres']) {
      writeFileSync(join(folder, 'migrations', dialect, file), 'create table songs (title text)')
    }
    const main = join(folder, 'main.ts')
    const imports =
      "import { postgresMigrations, sqliteMigrations } from './src/store/engine/migration-files.ts'"
    writeFileSync(main, `${imports}\nconsole.log(JSON.stringify({ sqliteMigrations, postgresMigrations }))`)
    return { folder, main, dispose: () => rmSync(folder, { recursive: true }) }
  }

  const next = `${String(sqliteMigrations.length + 1).padStart(4, '0')}_songs`
  const run = (command: string[]) => {
    const { stdout, stderr, exitCode } = Bun.spawnSync(command)
    return { stdout: stdout.toString(), stderr: stderr.toString(), exitCode }
  }

  test('registers it', () => {
    const { main, dispose } = copyWithMigration(`${next}.sql`)
    try {
      const { stdout } = run([process.execPath, main])
      const added = { name: next, sql: 'create table songs (title text)' }
      const registered = JSON.parse(stdout)
      expect(registered.sqliteMigrations).toEqual([...sqliteMigrations, added])
      expect(registered.postgresMigrations).toEqual([...postgresMigrations, added])
    } finally {
      dispose()
    }
  })

  test.each(['0001_again.sql', '9999_gap.sql', `${next}.txt`, `${next}-Songs.sql`])(
    'fails when it is named %s',
    (file) => {
      const { main, dispose } = copyWithMigration(file)
      try {
        const { stderr, exitCode } = run([process.execPath, main])
        expect(exitCode).not.toBe(0)
        expect(stderr).toContain('must be named 00')
      } finally {
        dispose()
      }
    },
  )
})
