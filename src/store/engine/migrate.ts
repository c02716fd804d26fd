import { createHash } from 'node:crypto'
import type { Database as SqliteConnection } from 'bun:sqlite'
import initialPostgres from '../../../migrations/postgres/0001_initial.sql' with { type: 'text' }
import deliveryPostgres from '../../../migrations/postgres/0002_delivery.sql' with { type: 'text' }
import guardPostgres from '../../../migrations/postgres/0004_guard.sql' with { type: 'text' }
import messagesPostgres from '../../../migrations/postgres/0003_messages.sql' with { type: 'text' }
import webhooksPostgres from '../../../migrations/postgres/0005_webhooks.sql' with { type: 'text' }
import operationsPostgres from '../../../migrations/postgres/0006_operations.sql' with { type: 'text' }
import inboxOrderPostgres from '../../../migrations/postgres/0007_inbox_order.sql' with { type: 'text' }
import rateTimesPostgres from '../../../migrations/postgres/0008_rate_times.sql' with { type: 'text' }
import shortRowsPostgres from '../../../migrations/postgres/0009_short_rows.sql' with { type: 'text' }
import initialSqlite from '../../../migrations/sqlite/0001_initial.sql' with { type: 'text' }
import deliverySqlite from '../../../migrations/sqlite/0002_delivery.sql' with { type: 'text' }
import messagesSqlite from '../../../migrations/sqlite/0003_messages.sql' with { type: 'text' }
import guardSqlite from '../../../migrations/sqlite/0004_guard.sql' with { type: 'text' }
import webhooksSqlite from '../../../migrations/sqlite/0005_webhooks.sql' with { type: 'text' }
import operationsSqlite from '../../../migrations/sqlite/0006_operations.sql' with { type: 'text' }
import inboxOrderSqlite from '../../../migrations/sqlite/0007_inbox_order.sql' with { type: 'text' }
import rateTimesSqlite from '../../../migrations/sqlite/0008_rate_times.sql' with { type: 'text' }
import shortRowsSqlite from '../../../migrations/sqlite/0009_short_rows.sql' with { type: 'text' }
import { driverCode } from './errors.ts'

export type Migration = { name: string; sql: string }

/** The schema's history, oldest first, as it is compiled into the binary. What has landed is never edited. */
export const sqliteMigrations: Migration[] = [
  { name: '0001_initial', sql: initialSqlite },
  { name: '0002_delivery', sql: deliverySqlite },
  { name: '0003_messages', sql: messagesSqlite },
  { name: '0004_guard', sql: guardSqlite },
  { name: '0005_webhooks', sql: webhooksSqlite },
  { name: '0006_operations', sql: operationsSqlite },
  { name: '0007_inbox_order', sql: inboxOrderSqlite },
  { name: '0008_rate_times', sql: rateTimesSqlite },
  { name: '0009_short_rows', sql: shortRowsSqlite },
]
export const postgresMigrations: Migration[] = [
  { name: '0001_initial', sql: initialPostgres },
  { name: '0002_delivery', sql: deliveryPostgres },
  { name: '0003_messages', sql: messagesPostgres },
  { name: '0004_guard', sql: guardPostgres },
  { name: '0005_webhooks', sql: webhooksPostgres },
  { name: '0006_operations', sql: operationsPostgres },
  { name: '0007_inbox_order', sql: inboxOrderPostgres },
  { name: '0008_rate_times', sql: rateTimesPostgres },
  { name: '0009_short_rows', sql: shortRowsPostgres },
]

export type AppliedMigration = { name: string; checksum: string }

/** The database cannot be used by this version of otpd. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
  /** What to do about it. */
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

export const migrationChecksum = (migration: Migration) =>
  createHash('sha256').update(migration.sql).digest('hex')

/**
 * What is still to be applied.
 *
 * @throws MigrationError the database is newer than this version, or a migration that it has was changed since
 */
export function pendingMigrations(available: Migration[], applied: AppliedMigration[]): Migration[] {
  for (const [index, appliedMigration] of applied.entries()) {
    const expected = available[index]
    if (!expected) {
      throw new MigrationError(
        `the database is newer than this otpd: it has migration ${appliedMigration.name}`,
        'Install the newer otpd, or restore a backup from before the upgrade. Nothing was changed.',
      )
    }
    if (
      expected.name !== appliedMigration.name ||
      migrationChecksum(expected) !== appliedMigration.checksum
    ) {
      throw new MigrationError(
        `the database was made by a different build: its migration ${appliedMigration.name} is not the one of this otpd`,
        'Use the otpd that made it, or restore a backup. Nothing was changed.',
      )
    }
  }
  return available.slice(applied.length)
}

const migrationsTableSql = `create table if not exists migrations (
  name text primary key not null,
  checksum text not null,
  applied_at integer not null
) strict, without rowid`

/**
 * The migrations that a SQLite database has, oldest first; none for an empty file.
 *
 * @throws MigrationError it is another program's
 */
export function readAppliedMigrations(connection: SqliteConnection): AppliedMigration[] {
  const tables = connection.query<{ name: string }, []>('select name from sqlite_schema').all()
  if (tables.length === 0) return []
  if (!tables.some(({ name }) => name === 'migrations')) {
    throw new MigrationError(
      'the database is not one of otpd',
      'Name another data directory, or restore a backup.',
    )
  }
  return connection.query<AppliedMigration, []>('select name, checksum from migrations order by name').all()
}

/**
 * Applies what is pending, all of it or nothing.
 *
 * Foreign keys are off meanwhile, as a rebuilt table would otherwise take its children with it; they are checked
 * before the commit. The caller holds the lock of the data directory.
 *
 * @throws MigrationError see pendingMigrations; a statement does not fit; or the data would break a foreign key
 */
export function migrateSqlite(
  connection: SqliteConnection,
  now: number,
  available = sqliteMigrations,
): Migration[] {
  const pending = pendingMigrations(available, readAppliedMigrations(connection))
  if (pending.length === 0) return pending
  connection.run('PRAGMA foreign_keys = OFF')
  connection.run('BEGIN IMMEDIATE')
  try {
    connection.run(migrationsTableSql)
    const insertMigration = connection.prepare(
      'insert into migrations (name, checksum, applied_at) values (?, ?, ?)',
    )
    for (const migration of pending) {
      applyMigration(connection, migration)
      insertMigration.run(migration.name, migrationChecksum(migration), now)
    }
    // A statement that lives on keeps the file open after its connection is closed.
    insertMigration.finalize()
    if (connection.query('PRAGMA foreign_key_check').get() !== null) {
      throw new MigrationError(
        'the migrated data would break a foreign key',
        'Report it. Nothing was changed.',
      )
    }
    connection.run('COMMIT')
  } catch (error) {
    if (connection.inTransaction) connection.run('ROLLBACK')
    throw error
  } finally {
    connection.run('PRAGMA foreign_keys = ON')
  }
  return pending
}

/** What the disk or another process is to blame for is thrown as it is. */
function applyMigration(connection: SqliteConnection, { name, sql }: Migration): void {
  try {
    connection.run(sql)
  } catch (error) {
    if (!/^SQLITE_(ERROR|CONSTRAINT|MISMATCH)/.test(driverCode(error) ?? '')) throw error
    // Of the statements of ours: it names tables and columns, and no value.
    const cause = error instanceof Error ? error.message : ''
    throw new MigrationError(
      `migration ${name} does not fit this database: ${cause}`,
      'Restore a backup, or report it. Nothing was changed.',
    )
  }
}
