import type { OnStep } from '../../shared/progress.ts'
import { createHash } from 'node:crypto'
import type { Database as SqliteConnection } from 'bun:sqlite'
import { driverCode } from './errors.ts'
import { fillLists } from './sqlite-list-fill.ts'
import { sqliteMigrations, type Migration } from './migration-files.ts'

export { postgresMigrations, sqliteMigrations, type Migration } from './migration-files.ts'

export type AppliedMigration = { name: string; checksum: string }

/** The database cannot be used by this version of otpd. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
  /** Advice for the operator. */
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

/** SHA-256 of the SQL text, in hex. */
export const migrationChecksum = (migration: Migration) =>
  createHash('sha256').update(migration.sql).digest('hex')

/**
 * Returns the migrations that the database lacks.
 *
 * @throws MigrationError the database is newer than this version, or one of its migrations differs from this version's
 */
export function pendingMigrations(available: Migration[], applied: AppliedMigration[]): Migration[] {
  const unknown = applied[available.length]
  if (unknown) {
    throw new MigrationError(
      `the database is newer than this otpd: it has migration ${unknown.name}`,
      'Install the newer otpd, or restore the backup that the upgrade made: otpd restore FILE. Nothing was changed.',
    )
  }
  requireSameMigrations(available, applied)
  return available.slice(applied.length)
}

/** Requires that the migrations that a database and this version both have are the same. @throws MigrationError */
export function requireSameMigrations(available: Migration[], applied: AppliedMigration[]): void {
  for (const [index, expected] of available.entries()) {
    const appliedMigration = applied[index]
    if (!appliedMigration) return
    if (
      expected.name !== appliedMigration.name ||
      migrationChecksum(expected) !== appliedMigration.checksum
    ) {
      throw new MigrationError(
        `the database was created by a different build: its migration ${appliedMigration.name} differs from this otpd's`,
        'Use the otpd that created it, or restore a backup. Nothing was changed.',
      )
    }
  }
}

/** Whether migrations write existing rows again, which takes time and space in proportion to the database. */
export const rewritesRows = (migrations: readonly Migration[]): boolean =>
  migrations.some(({ sql }) => /^\s*(insert (or \w+ )?into|update )/im.test(sql))

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
  connection.run('BEGIN IMMEDIATE')
  try {
    applyMigrations(connection, pending, now, onStep)
    onStep({ step: 'checking the migrated data' })
    if (connection.query('PRAGMA foreign_key_check').get() !== null) {
      throw new MigrationError(
        'the migrated data would violate a foreign key',
        'Report it. Nothing was changed.',
      )
    }
    beforeCommit()
    connection.run('COMMIT')
  } catch (error) {
    if (connection.inTransaction) connection.run('ROLLBACK')
    throw error
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
