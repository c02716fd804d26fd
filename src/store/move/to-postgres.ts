import type { Database as SqliteConnection } from 'bun:sqlite'
import type { Client } from 'pg'
import { migratePostgres, movingKey, readPostgresSchema } from '../postgres/migrate.ts'
import { sqliteMigrations } from '../engine/migration-files.ts'
import { pendingMigrations } from '../engine/migrations.ts'
import { readAppliedMigrations } from '../sqlite/migrate.ts'
import { runOnPostgres, runOnSqlite } from '../engine/sql-steps.ts'
import { OperationRefused, StartRefused } from '../data-dir/data-dir.ts'
import { movedToKey, readMovedTo } from '../data-dir/moved.ts'
import { readMeta, selectMeta, upsertMeta } from '../data-dir/data-keys.ts'
import { requireOwnSchema } from '../data-dir/schema.ts'
import { readTableSum } from './checksum.ts'
import { analyzeTables, dropIndexes, emptyTables, loadTable, makePartitions } from './load.ts'
import { listMovedTables, type MovedTable } from './moved-tables.ts'

/** Progress of a move. `rows` of `rowsTotal` are sent, over all tables. */
export type MoveStep =
  | { step: 'schema' | 'empty' | 'keys' | 'commit' | 'mark' | 'finish' }
  | { step: 'copy'; table: string; rows: number; rowsTotal: number }
  | { step: 'compare'; table: string; rows: number; checksum: string }
  | { step: 'index'; done: number; total: number }

export type MoveResult = {
  /** `checked`: a dry run. `finished`: an interrupted move only had to be ended. */
  outcome: 'moved' | 'checked' | 'finished'
  tables: Array<{ name: string; rows: number }>
}

export type MoveOptions = {
  dryRun: boolean
  /** Begins again after a move that was interrupted. */
  restart: boolean
  now: number
  /** Host and name of the database, for people; without user and password. */
  target: string
  onStep(step: MoveStep): void
}

/**
 * Moves a data directory's database to PostgreSQL. The caller holds the lock of the data directory, and the transaction
 * of this function keeps host commands from writing.
 *
 * All rows are loaded in one transaction of PostgreSQL. Before it, `meta.moving` is written there, after it
 * `meta.moved_to` into the SQLite file, and then `meta.moving` is deleted. A database with one of the two is not served,
 * so an interruption at any place leaves at most one of them in use.
 *
 * @throws OperationRefused NOT_EMPTY, MOVE_INTERRUPTED, ALREADY_MOVED, MOVE_DIFFERS; StartRefused the file is older than
 *   this version; MigrationError
 */
export async function moveToPostgres(
  source: SqliteConnection,
  client: Client,
  options: MoveOptions,
): Promise<MoveResult> {
  // Until the end no other process can write.
  source.run('BEGIN IMMEDIATE')
  try {
    const result = await moveFrozen(source, client, options)
    source.run('COMMIT')
    if (result.outcome === 'moved') await finish(client, options)
    return result
  } catch (error) {
    if (source.inTransaction) source.run('ROLLBACK')
    throw error
  }
}

async function moveFrozen(
  source: SqliteConnection,
  client: Client,
  options: MoveOptions,
): Promise<MoveResult> {
  const { dryRun, restart, now, target, onStep } = options
  requireCurrentSchema(source)
  const moving = await readMoving(client)
  const movedTo = readMovedTo(source)
  if (movedTo) {
    if (moving !== movedTo.id) throw alreadyMovedError(movedTo.target)
    if (!dryRun) await finish(client, options)
    return { outcome: 'finished', tables: [] }
  }
  if (moving !== undefined && !restart) throw interruptedError()
  if (moving === undefined) await requireEmpty(client)
  const tables = listMovedTables(source)
  const counts = tables.map((table) => ({ name: table.name, rows: table.count() }))
  if (dryRun) {
    await requireOwner(client)
    return { outcome: 'checked', tables: counts }
  }

  onStep({ step: 'schema' })
  const id = crypto.randomUUID()
  await prepareTarget(client, id, moving)
  await inTransaction(client, async () => {
    onStep({ step: 'empty' })
    await emptyTables(client)
    const definitions = await dropIndexes(client)
    await makePartitions(client, source, now)
    await loadTables(client, tables, counts, onStep)
    for (const [done, definition] of definitions.entries()) {
      onStep({ step: 'index', done, total: definitions.length })
      await client.query(definition)
    }
    onStep({ step: 'keys' })
    await client.query(`select setval('phones_keys', (select coalesce(max(key), 0) + 1 from phones), false)`)
    await client.query('insert into meta (name, value) values ($1, $2)', [movingKey, id])
    await analyzeTables(client)
    onStep({ step: 'commit' })
  })
  onStep({ step: 'mark' })
  runOnSqlite(source, upsertMeta(movedToKey, JSON.stringify({ id, target, at: now })))
  return { outcome: 'moved', tables: counts }
}

/** @throws StartRefused the file has another schema than this version's */
function requireCurrentSchema(source: SqliteConnection): void {
  const applied = readAppliedMigrations(source)
  if (applied.length === 0 || readMeta(source, 'master_key_check') === null)
    throw new OperationRefused(
      'NO_DATABASE',
      'the database was never used',
      'Name the directory of your server.',
    )
  if (pendingMigrations(sqliteMigrations, applied).length > 0)
    throw new StartRefused('the database is older than this otpd', 'Migrate it first: otpd migrate up')
  requireOwnSchema(source)
}

const interruptedError = () =>
  new OperationRefused(
    'MOVE_INTERRUPTED',
    'an earlier move into this database was interrupted, or is under way',
    'Unless it is under way, begin it again: otpd migrate to-postgres --restart',
  )

const alreadyMovedError = (target: string) =>
  new OperationRefused(
    'ALREADY_MOVED',
    `this database was moved to PostgreSQL before (${target})`,
    'To move it again, restore a backup from before the move.',
  )

/** Reads the id of the move that was begun into this database; undefined if there is none. */
async function readMoving(client: Client): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string | null }>(`select to_regclass('meta')::text as name`)
  if (!rows[0]?.name) return undefined
  return (await runOnPostgres(client, selectMeta(movingKey))) ?? undefined
}

/** Requires a database without a schema, or one that no node has served. @throws OperationRefused NOT_EMPTY */
async function requireEmpty(client: Client): Promise<void> {
  const { applied } = await readPostgresSchema(client)
  if (applied.length === 0) return
  const { rows } = await client.query(
    `select 1 where exists (select 1 from developers) or exists (select 1 from data_keys)
       or exists (select 1 from otp_requests) or exists (select 1 from events)`,
  )
  if (rows.length === 0) return
  throw new OperationRefused(
    'NOT_EMPTY',
    'the PostgreSQL database already has data of otpd',
    'Create an empty database, and name it in OTPD_DATABASE_URL.',
  )
}

/** @throws OperationRefused NOT_OWNER the role must not create or change tables */
async function requireOwner(client: Client): Promise<void> {
  const { rows } = await client.query<{ canCreate: boolean; ownsAll: boolean }>(
    `select has_schema_privilege(current_schema(), 'create') as "canCreate",
       not exists (select 1 from pg_class where relnamespace = current_schema()::regnamespace
         and relkind in ('r', 'p') and not pg_has_role(relowner, 'usage')) as "ownsAll"`,
  )
  if (rows[0]?.canCreate && rows[0].ownsAll) return
  throw new OperationRefused(
    'NOT_OWNER',
    'the role of OTPD_DATABASE_URL may not change the schema',
    'Use the role that owns the tables.',
  )
}

/**
 * Brings the schema up to date, and marks the database as one that is not served.
 *
 * @param moving id of the move that is begun again
 * @throws OperationRefused another move has begun or ended meanwhile
 */
async function prepareTarget(client: Client, id: string, moving: string | undefined): Promise<void> {
  await migratePostgres(client, { migrate: true, isMove: true })
  await inTransaction(client, async () => {
    await client.query('lock table meta')
    if ((await readMoving(client)) !== moving) throw interruptedError()
    if (moving === undefined) await requireEmpty(client)
    await runOnPostgres(client, upsertMeta(movingKey, id))
  })
}

async function inTransaction(client: Client, body: () => Promise<void>): Promise<void> {
  await client.query('begin')
  try {
    await client.query("set local lock_timeout = '5s'")
    await client.query('set local statement_timeout = 0')
    await client.query('set local idle_in_transaction_session_timeout = 0')
    await client.query("set local maintenance_work_mem = '256MB'")
    await body()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function loadTables(
  client: Client,
  tables: readonly MovedTable[],
  counts: MoveResult['tables'],
  onStep: MoveOptions['onStep'],
): Promise<void> {
  const rowsTotal = counts.reduce((total, { rows }) => total + rows, 0)
  let before = 0
  for (const table of tables) {
    const report = (rows: number) =>
      onStep({ step: 'copy', table: table.name, rows: before + rows, rowsTotal })
    report(0)
    const sent = await loadTable(client, table, report)
    const stored = await readTableSum(client, table)
    onStep({ step: 'compare', table: table.name, ...stored })
    const expectedRows = counts.find(({ name }) => name === table.name)?.rows
    if (sent.rows !== expectedRows || sent.rows !== stored.rows || sent.checksum !== stored.checksum) {
      throw new OperationRefused(
        'MOVE_DIFFERS',
        `the table ${table.name} differs after the move (${sent.rows} rows sent, ${stored.rows} found)`,
        'Report it. Nothing was changed: the data directory can be served as before.',
      )
    }
    before += sent.rows
  }
}

/** Lets nodes serve the database. */
async function finish(client: Client, { onStep }: Pick<MoveOptions, 'onStep'>): Promise<void> {
  onStep({ step: 'finish' })
  await client.query('delete from meta where name = $1', [movingKey])
}
