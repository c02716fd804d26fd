import { eq, sql } from 'drizzle-orm'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { bigint, customType, integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { ColumnKit } from '../engine/tables/columns.ts'
import type { Preparable, QueryExecutor, Database } from '../engine/database.ts'
import { connectPostgres, statementName, type PostgresOptions, groupsMax } from './connections.ts'
import { createGroups } from './groups.ts'
import { sessionOf } from './session.ts'
import { createTransactions, type OpenTransaction } from './transactions.ts'
import { createWriteTurns } from './write-turns.ts'
import { createErrorConverter } from '../engine/errors.ts'
import { partitions } from './partitions.ts'
import { defineTables } from '../engine/tables.ts'
import { defineAdmissionTable } from '../engine/tables/limits.ts'
import { systemWorld } from '../../world/system.ts'

const words = customType<{ data: readonly string[] | null; driverData: string | null }>({
  dataType: () => 'text',
  // Unlike other values, those of placeholders are encoded here when they are null, too.
  toDriver: (list) => list?.join(' ') ?? null,
  fromDriver: (list) => list?.split(' ') ?? null,
})

/**
 * The columns of `sqliteColumns` for PostgreSQL. The assertion is sound because each kind has the same JavaScript value
 * in both.
 */
export const postgresColumns = {
  table: pgTable,
  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => bigint(name, { mode: 'number' }),
  shortId: (name: string) => text(name),
  words,
  shortIds: words,
} as unknown as ColumnKit

/** Opens a migrated PostgreSQL database. Connections are made when they are needed. */
export function openPostgres(url: string, options: Partial<PostgresOptions> = {}): Database {
  const { onUnavailable, ...connecting } = options
  const { writersCount, suspect, ...connections } = connectPostgres(url, connecting)
  return describePostgres({
    ...connections,
    groupsMax,
    writesMax: writersCount - 1,
    onUnavailable(code, denied) {
      suspect(code)
      onUnavailable?.(code, denied)
    },
  })
}

type Connections = {
  read: QueryExecutor
  begin(): Promise<OpenTransaction>
  /** Groups of calls that run at the same time. */
  groupsMax: number
  /** Other transactions that run at the same time; those that are urgent are not counted. */
  writesMax: number
  /** Whether prepared statements have names, so that the server plans them once per connection. */
  isNamed: boolean
  /** See `PostgresOptions`. */
  acquireTimeoutMs: number
  onUnavailable?: PostgresOptions['onUnavailable']
  close(): Promise<void>
}

/** Creates the database of some connections. */
export function describePostgres({
  read,
  begin,
  groupsMax,
  writesMax,
  isNamed,
  acquireTimeoutMs,
  onUnavailable,
  close,
}: Connections): Database {
  const convertError = createErrorConverter(onUnavailable)
  const run = createTransactions(begin)
  const takeTurn = createWriteTurns(writesMax, acquireTimeoutMs)
  const prepare = <R>(build: () => Preparable<R>) => {
    let statement: { execute(values?: Record<string, unknown>): Promise<R> } | undefined
    return (values?: Record<string, unknown>) => {
      if (!statement) {
        const query = build() as NamedPreparable<R>
        statement = query.prepare(isNamed ? statementName(query.toSQL().sql) : undefined)
      }
      return statement.execute(values)
    }
  }

  return {
    // Its server runs in no other world.
    world: systemWorld,
    tables: defineTables(postgresColumns),
    postgres: { admissionTable: defineAdmissionTable(postgresColumns), partitions },
    read,
    async write(body, { isUrgent = false } = {}) {
      try {
        return await (isUrgent ? run(body) : takeTurn(() => run(body)))
      } catch (error) {
        throw convertError(error)
      }
    },
    group: createGroups(run, groupsMax, convertError, acquireTimeoutMs),
    convertError,
    // A commit is visible only once it is on disk.
    whenDurable: () => Promise.resolve(),
    prepare,
    writeRows: (executor, rowWrite) => (rows) => {
      if (rows.length > 0) sessionOf(executor).write(rowWrite, rows)
    },
    shortId: (id) => id,
    matchesShortId: (id, shortId) => eq(id, shortId),
    async lock(tx, table, idColumn, id) {
      const select = (tx as unknown as NodePgDatabase).select({ one: sql`1` })
      const rows = await select
        .from(table as never)
        .where(eq(idColumn, id))
        // Not `update`, for which rows that refer to this one would wait: a worker that writes to an endpoint twice makes
        // PostgreSQL look at its application, which calls lock before their endpoints.
        .for('no key update')
      return rows.length === 0 ? 'missing' : 'locked'
    },
    secureDelete: () => {},
    overwriteFreeSpace: () => Promise.resolve(true),
    skipLocked: (table) => sql.raw(`for no key update of ${table} skip locked`),
    close,
  }
}

/** drizzle's builders on PostgreSQL, whose statements may have names. */
type NamedPreparable<R> = {
  toSQL(): { sql: string }
  prepare(name?: string): ReturnType<Preparable<R>['prepare']>
}
