import type { OnStep } from '../../shared/progress.ts'
import type { Database as SqliteConnection } from 'bun:sqlite'
import { driverCode } from '../engine/errors.ts'
import { transact } from './transact.ts'
import { fillLists } from './list-fill.ts'
import { sqliteMigrations, type Migration } from '../engine/migration-files.ts'
import {
  migrationChecksum,
  MigrationError,
  pendingMigrations,
  type AppliedMigration,
} from '../engine/migrations.ts'

const migrationsTableSql = `create table if not exists migrations (
  name text primary key not null,
  checksum text not null,
  applied_at integer not null
) strict, without rowid`

/**
 * Lists the migrations applied to a SQLite database, oldest first; none for an empty file.
 *
 * @throws MigrationError the database belongs to another program
 */
export function readAppliedMigrations(connection: SqliteConnection): AppliedMigration[] {
  const tables = connection.query<{ name: string }, []>('select name from sqlite_schema').all()
  if (tables.length === 0) return []
  if (!tables.some(({ name }) => name === 'migrations')) {
    throw new MigrationError(
      'the database was not created by otpd',
      'Choose another data directory, or restore a backup.',
    )
  }
  return connection.query<AppliedMigration, []>('select name, checksum from migrations order by name').all()
}

/**
 * Applies all pending migrations in one transaction.
 *
 * Foreign keys are off while it runs, because rebuilding a table would otherwise delete its child rows; they are
 * checked before the commit. The caller must hold the lock of the data directory.
 *
 * @param beforeCommit called inside the transaction, after the last migration
 * @param onStep called before each migration
 * @returns the migrations that were applied
 * @throws MigrationError see pendingMigrations; a statement fails; or the migrated data would violate a foreign key
 */
export function migrateSqlite(
  connection: SqliteConnection,
  now: number,
  available = sqliteMigrations,
  beforeCommit: () => void = () => {},
  onStep: OnStep = () => {},
): Migration[] {
  const pending = pendingMigrations(available, readAppliedMigrations(connection))
  if (pending.length === 0) return pending
  connection.run('PRAGMA foreign_keys = OFF')
  // Rebuilding a table frees pages with phone numbers. When SQLite uses such a page again, as it does for a tree that grows
  // by a level, FAST leaves the old content in its gaps.
  connection.run('PRAGMA secure_delete = ON')
  try {
    transact(connection, () => {
      applyMigrations(connection, pending, now, onStep)
      onStep({ step: 'checking the migrated data' })
      if (connection.query('PRAGMA foreign_key_check').get() !== null) {
        throw new MigrationError(
          'the migrated data would violate a foreign key',
          'Report it. Nothing was changed.',
        )
      }
      beforeCommit()
    })
  } finally {
    connection.run('PRAGMA foreign_keys = ON')
    connection.run('PRAGMA secure_delete = FAST')
  }
  return pending
}

/** Applies migrations and records them, inside the caller's transaction. @throws MigrationError a statement fails */
export function applyMigrations(
  connection: SqliteConnection,
  migrations: readonly Migration[],
  now: number,
  onStep: OnStep = () => {},
): void {
  connection.run(migrationsTableSql)
  const insertMigration = connection.prepare(
    'insert into migrations (name, checksum, applied_at) values (?, ?, ?)',
  )
  for (const [index, migration] of migrations.entries()) {
    onStep({ step: `migrating ${migration.name} (${index + 1} of ${migrations.length})` })
    applyMigration(connection, migration)
    // The last migration that changes the lists.
    if (migration.name === '0033_lists') fillLists(connection)
    insertMigration.run(migration.name, migrationChecksum(migration), now)
  }
  // An open statement keeps the file open after its connection is closed.
  insertMigration.finalize()
}

/**
 * Runs the statements of one migration.
 *
 * @throws MigrationError the statements are at fault; errors of the disk or of a locked database pass unchanged
 */
function applyMigration(connection: SqliteConnection, { name, sql }: Migration): void {
  try {
    connection.run(sql)
  } catch (error) {
    if (!/^SQLITE_(ERROR|CONSTRAINT|MISMATCH)/.test(driverCode(error) ?? '')) throw error
    // SQLite's message names tables and columns of our statements, never a value.
    const cause = error instanceof Error ? error.message : ''
    throw new MigrationError(
      `migration ${name} cannot be applied to this database: ${cause}`,
      'Restore a backup, or report it. Nothing was changed.',
    )
  }
}
