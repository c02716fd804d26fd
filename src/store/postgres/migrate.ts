import type { QueryResultRow } from 'pg'
import { driverCode } from '../engine/errors.ts'
import { postgresMigrations, type Migration } from '../engine/migration-files.ts'
import {
  migrationChecksum,
  MigrationError,
  requireSameMigrations,
  type AppliedMigration,
} from '../engine/migrations.ts'
import { migrationScope } from './migration-scope.ts'

/** One connection to PostgreSQL. Without values, the text may hold several statements. */
export type SqlClient = {
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<{ rows: R[] }>
}

/** Key of the advisory lock that migrations take: the bytes of "otpd". */
const lockKey = 0x6f747064
/**
 * A migration waits so long for a lock, and then begins again after a pause, in which the calls that waited behind it go on.
 * Shorter than `deadlock_timeout`, so that a deadlock ends the migration's transaction and not a call's.
 */
const lockTimeout = '300ms'
const lockPauseMs = 200
const attemptsMax = 120
/** Nodes look at the schema every 10 s, and take 10 s at most to drain. */
const drainMsDefault = 25_000

/** As in SQLite. nodes_from is the number of the newest migration that a node must know to serve this schema, and
 * applied_at null until the nodes that do not know it have had the time to drain. */
const migrationsTableSql = `create table if not exists migrations (
  name text collate "C" primary key not null,
  checksum text not null,
  applied_at bigint,
  nodes_from integer not null
)`

type PostgresSchema = {
  /** Oldest first; none in an empty database. */
  applied: AppliedMigration[]
  /** Number of the newest migration that a node must know. */
  nodesFrom: number
  /** A move from SQLite into this database has not ended. */
  isMoving: boolean
}

/** Name in `meta` of the move from SQLite that has not ended. */
export const movingKey = 'moving'

/**
 * Reads which migrations were applied to a PostgreSQL database.
 *
 * @throws MigrationError the schema has tables of another program
 */
export async function readPostgresSchema(client: SqlClient): Promise<PostgresSchema> {
  const tables = await client.query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = current_schema()',
  )
  if (tables.rows.length === 0) return { applied: [], nodesFrom: 0, isMoving: false }
  if (!tables.rows.some(({ name }) => name === 'migrations')) {
    throw new MigrationError(
      'the database was not created by otpd',
      'Name an empty database, or one that otpd created.',
    )
  }
  const { rows } = await client.query<AppliedMigration & { isApplied: boolean; nodesFrom: number }>(
    `select name, checksum, applied_at is not null as "isApplied", nodes_from as "nodesFrom"
     from migrations order by name`,
  )
  const moving = await client.query('select 1 from meta where name = $1', [movingKey])
  return {
    applied: rows.filter(({ isApplied }) => isApplied).map(({ name, checksum }) => ({ name, checksum })),
    nodesFrom: Math.max(0, ...rows.map(({ nodesFrom }) => nodesFrom)),
    isMoving: moving.rows.length > 0,
  }
}

/**
 * Requires that this version may serve a database: a newer schema is served as long as it has everything that this version
 * uses.
 *
 * @throws MigrationError it may not, or a move into the database has not ended
 */
export function requireServable(
  { nodesFrom, isMoving }: Pick<PostgresSchema, 'nodesFrom' | 'isMoving'>,
  available = postgresMigrations,
): void {
  if (isMoving) {
    throw new MigrationError(
      'a data directory is being moved into this database, or its move was interrupted',
      'Wait until it has ended, or begin it again: otpd migrate to-postgres --restart',
    )
  }
  if (nodesFrom > available.length) {
    throw new MigrationError(
      `the database is newer than this otpd: its nodes must know migration ${String(nodesFrom).padStart(4, '0')}`,
      'Install the newer otpd, or restore a backup from before the upgrade. Nothing was changed.',
    )
  }
}

/**
 * Returns the migrations that a PostgreSQL database lacks.
 *
 * @throws MigrationError see requireServable; or a migration differs from this version's
 */
export function pendingPostgresMigrations(
  schema: PostgresSchema,
  available = postgresMigrations,
): Migration[] {
  requireServable(schema, available)
  requireSameMigrations(available, schema.applied)
  return available.slice(schema.applied.length)
}

type MigrateOptions = {
  /** False: refuse an older database. */
  migrate: boolean
  available?: Migration[]
  /** Opens a second connection, which holds the lock while an index is built outside a transaction. */
  connect?(): Promise<SqlClient & { end(): Promise<void> }>
  /** For the move itself. */
  isMove?: boolean
  /** How long nodes have to drain that a migration makes too old. */
  drainMs?: number
  /** Called before that wait. */
  onDrain?(name: string): void
}

/**
 * Applies all pending migrations: to an empty database in one transaction, else each in its own, because one that locks
 * several tables deadlocks with calls, which lock them in another order. If that is interrupted, the next one goes on. Nodes
 * that start at the same time take turns by an advisory lock, and all but the first find nothing to do. Before a migration
 * that drops what older nodes use, these have time to drain.
 *
 * @returns the migrations that were applied, and whether the database was empty
 * @throws MigrationError see pendingPostgresMigrations; a statement fails; the role must not change the schema
 */
export async function migratePostgres(
  client: SqlClient,
  options: MigrateOptions,
): Promise<{ isNew: boolean; migrated: string[] }> {
  const { migrate, available = postgresMigrations, connect, drainMs = drainMsDefault, onDrain } = options
  async function readPending() {
    const schema = await readPostgresSchema(client)
    return pendingPostgresMigrations(options.isMove ? { ...schema, isMoving: false } : schema, available)
  }
  const isNew = (await readPostgresSchema(client)).applied.length === 0
  const migrated: string[] = []
  // Most starts find nothing to do, with a role that must not change the schema.
  for (;;) {
    const [next] = await readPending()
    if (!next) return { isNew, migrated }
    if (!migrate && !isNew)
      throw new MigrationError('the database is older than this otpd', 'Migrate it: otpd migrate up')
    const { isConcurrent, nodesFrom } = migrationScope(next)
    if (isConcurrent) migrated.push(...(await buildIndex(client, next, connect)))
    else {
      if (!isNew && nodesFrom > 0) {
        await withRetries(client, () => record(client, next, false))
        onDrain?.(next.name)
        await Bun.sleep(drainMs)
      }
      const apply = async () => applyInTransaction(client, await readPending(), isNew)
      migrated.push(...(await withRetries(client, apply)))
    }
  }
}

/**
 * Runs a transaction again that waited too long for a lock.
 *
 * @throws MigrationError the role must not change the schema, or another program holds the lock for a minute
 */
async function withRetries<T>(client: SqlClient, body: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      await begin(client)
      const result = await body()
      await client.query('commit')
      return result
    } catch (error) {
      // On a lost connection this fails too, and would hide why.
      await client.query('rollback').catch(() => {})
      const code = driverCode(error)
      if (code === '42501') throw noPrivilegeError()
      if (code !== '55P03' && code !== '40P01') throw error
      if (attempt === attemptsMax) throw lockedError()
      await Bun.sleep(lockPauseMs)
    }
  }
}

const lockedError = () =>
  new MigrationError(
    'a migration waited a minute for a lock on a table',
    'End the transaction that holds it, such as a backup (pg_stat_activity lists it), and migrate again.',
  )

const noPrivilegeError = () =>
  new MigrationError(
    'the database is older than this otpd, and its role may not change the schema',
    'Run `otpd migrate up` with the role that owns the tables.',
  )

/** Begins a transaction that alone may migrate. */
async function begin(client: SqlClient): Promise<void> {
  await client.query('begin')
  await client.query('set local statement_timeout = 0')
  await client.query('set local idle_in_transaction_session_timeout = 0')
  // Another node may build an index for minutes.
  await client.query('select pg_advisory_xact_lock($1)', [lockKey])
  await client.query(`set local lock_timeout = '${lockTimeout}'`)
}

/** Applies the next pending migration; to an empty database all, up to the first that must run outside a transaction. */
async function applyInTransaction(client: SqlClient, pending: Migration[], isNew: boolean) {
  await client.query(migrationsTableSql)
  const names: string[] = []
  for (const migration of isNew ? pending : pending.slice(0, 1)) {
    if (migrationScope(migration).isConcurrent) break
    await runMigration(client, migration)
    await record(client, migration, true)
    names.push(migration.name)
  }
  return names
}

/** @param isApplied false: nodes that do not know what the migration needs drain before it is applied */
async function record(client: SqlClient, migration: Migration, isApplied: boolean): Promise<void> {
  const appliedAt = isApplied ? '(extract(epoch from clock_timestamp()) * 1000)::bigint' : 'null'
  await client.query(
    `insert into migrations (name, checksum, applied_at, nodes_from) values ($1, $2, ${appliedAt}, $3)
     on conflict (name) do update set checksum = excluded.checksum, applied_at = excluded.applied_at
     where migrations.applied_at is null`,
    [migration.name, migrationChecksum(migration), migrationScope(migration).nodesFrom],
  )
}

/**
 * Builds an index while nodes write. PostgreSQL does so only outside a transaction, so that another connection holds the
 * lock.
 */
async function buildIndex(
  client: SqlClient,
  migration: Migration,
  connect: MigrateOptions['connect'],
): Promise<string[]> {
  const index = /create (?:unique )?index concurrently (\w+)/.exec(migration.sql)?.[1]
  if (index === undefined || !connect)
    throw new MigrationError(
      `migration ${migration.name} builds an index while nodes write`,
      'Run: otpd migrate up',
    )
  const holder = await connect()
  try {
    return await withRetries(holder, async () => {
      const { applied } = await readPostgresSchema(holder)
      if (applied.some(({ name }) => name === migration.name)) return []
      // The index waits for all snapshots, and a query with values keeps its own until the next one without.
      await holder.query('select 1')
      // One that was interrupted has left an index that is not valid.
      await client.query(`drop index concurrently if exists ${index}`)
      await runMigration(client, migration)
      await record(holder, migration, true)
      return [migration.name]
    })
  } finally {
    await holder.end()
  }
}

/**
 * Runs the statements of one migration.
 *
 * @throws MigrationError the statements are at fault; other errors, such as a lost connection, pass unchanged
 */
async function runMigration(client: SqlClient, { name, sql }: Migration): Promise<void> {
  try {
    await client.query(sql)
  } catch (error) {
    const code = driverCode(error) ?? ''
    // Statements that do not fit the schema or its rows, but not a missing privilege.
    if (!/^(22|23|42)/.test(code) || code === '42501') throw error
    throw new MigrationError(
      `migration ${name} cannot be applied to this database (${code})`,
      'Restore a backup, or report it. It changed nothing.',
    )
  }
}
