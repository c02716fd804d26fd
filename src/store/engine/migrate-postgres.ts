import type { ClientBase } from 'pg'
import { driverCode } from './errors.ts'
import {
  migrationChecksum,
  MigrationError,
  pendingMigrations,
  postgresMigrations,
  type AppliedMigration,
} from './migrate.ts'
import type { Migration } from './read-migrations.ts'

/** Key of the advisory lock that migrations take: the bytes of "otpd". */
const lockKey = 0x6f747064
/** A migration waits this long for a lock, then begins again: others would wait behind it. */
const lockTimeout = '5s'
const attemptsMax = 6

const migrationsTableSql = `create table if not exists migrations (
  name text collate "C" primary key not null,
  checksum text not null,
  applied_at bigint not null
)`

/**
 * Lists the migrations applied to a PostgreSQL database, oldest first; none for an empty one.
 *
 * @throws MigrationError the schema has tables of another program
 */
export async function readPostgresMigrations(client: ClientBase): Promise<AppliedMigration[]> {
  const tables = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = current_schema()`,
  )
  if (tables.rows.length === 0) return []
  if (!tables.rows.some(({ name }) => name === 'migrations')) {
    throw new MigrationError(
      'the database was not created by otpd',
      'Name an empty database, or one that otpd created.',
    )
  }
  const applied = await client.query<AppliedMigration>('select name, checksum from migrations order by name')
  return applied.rows
}

/**
 * Applies all pending migrations in one transaction. Nodes that start at once take turns by an advisory lock, and the
 * second finds nothing to do.
 *
 * @param options.migrate false: refuse an older database
 * @returns the migrations that were applied, and whether the database was empty
 * @throws MigrationError see pendingMigrations; a statement fails; this role may not change the schema
 */
export async function migratePostgres(
  client: ClientBase,
  { migrate, available = postgresMigrations }: { migrate: boolean; available?: Migration[] },
): Promise<{ isNew: boolean; migrated: string[] }> {
  // Most starts find nothing to do, with a role that may not change the schema.
  const found = await readPostgresMigrations(client)
  if (pendingMigrations(available, found).length === 0) return { isNew: false, migrated: [] }
  if (!migrate && found.length > 0)
    throw new MigrationError('the database is older than this otpd', 'Migrate it: otpd migrate up')
  for (let attempt = 1; ; attempt++) {
    try {
      return await applyInTransaction(client, available)
    } catch (error) {
      await client.query('rollback')
      const code = driverCode(error)
      if (code === '55P03' && attempt < attemptsMax) continue
      if (code === '42501') {
        throw new MigrationError(
          'the database is older than this otpd, and this role may not change it',
          'Migrate it with the role that owns the tables: otpd migrate up',
        )
      }
      throw error
    }
  }
}

async function applyInTransaction(client: ClientBase, available: Migration[]) {
  await client.query('begin')
  await client.query(`set local lock_timeout = '${lockTimeout}'`)
  await client.query(`set local statement_timeout = 0`)
  await client.query('select pg_advisory_xact_lock($1)', [lockKey])
  const applied = await readPostgresMigrations(client)
  const pending = pendingMigrations(available, applied)
  await client.query(migrationsTableSql)
  for (const migration of pending) {
    await applyMigration(client, migration)
    await client.query(
      `insert into migrations (name, checksum, applied_at)
       values ($1, $2, (extract(epoch from clock_timestamp()) * 1000)::bigint)`,
      [migration.name, migrationChecksum(migration)],
    )
  }
  await client.query('commit')
  return { isNew: applied.length === 0, migrated: pending.map(({ name }) => name) }
}

/**
 * Runs the statements of one migration.
 *
 * @throws MigrationError the statements are at fault; other errors, such as a lost connection, pass unchanged
 */
async function applyMigration(client: ClientBase, { name, sql }: Migration): Promise<void> {
  try {
    await client.query(sql)
  } catch (error) {
    const code = driverCode(error) ?? ''
    // Classes of statements that do not fit the schema or its rows, but for a missing privilege.
    if (!/^(22|23|42)/.test(code) || code === '42501') throw error
    const cause = error instanceof Error ? error.message : ''
    throw new MigrationError(
      `migration ${name} cannot be applied to this database: ${cause}`,
      'Restore a backup, or report it. Nothing was changed.',
    )
  }
}
