import { eq, sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import {
  bigint,
  customType,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core'
import { Pool } from 'pg'
import type { ColumnKit } from './tables/columns.ts'
import type { CallGroup, QueryExecutor, Database } from './database.ts'
import { toCallerError } from './errors.ts'
import { partitions } from './partitions.ts'
import { defineTables } from './tables.ts'
import { defineAdmissionTable } from './tables/limits.ts'

/**
 * The columns of `sqliteColumns` for PostgreSQL. The assertion is sound because each kind has the same JavaScript value
 * in both.
 */
const postgresColumns = {
  table: pgTable,
  index,
  uniqueIndex,
  primaryKey,
  text: (name: string) => text(name),
  integer: (name: string) => integer(name),
  timestampMs: (name: string) => bigint(name, { mode: 'number' }),
  shortId: (name: string) => text(name),
  shortIds: customType<{ data: readonly string[] | null; driverData: string | null }>({
    dataType: () => 'text',
    // Unlike other values, those of placeholders are encoded here when they are null, too.
    toDriver: (ids) => ids?.join(' ') ?? null,
    fromDriver: (list) => list?.split(' ') ?? null,
  }),
} as unknown as ColumnKit

/** The members that drizzle's PostgreSQL databases share for every driver. */
type PostgresDatabase = { transaction<T>(body: (tx: unknown) => Promise<T>): Promise<T> }

export type PostgresOptions = {
  /** Connections of this process at most. */
  connections: number
  /** Whether statements are prepared under names, which some connection poolers lose. */
  statements: 'named' | 'unnamed'
  /** Name of this process among the connections of the server. */
  applicationName: string
}

/** Opens a migrated PostgreSQL database. Each write is one transaction; the server does group commit itself. */
export function openPostgres(url: string, options: Partial<PostgresOptions> = {}): Database {
  const { connections = 20, applicationName = 'otpd' } = options
  const pool = new Pool({ connectionString: url, max: connections, application_name: applicationName })
  // The pool drops a connection that breaks while idle; a query in progress rejects with the error itself.
  pool.on('error', () => {})
  return wrapPostgres(drizzle(pool), () => pool.end())
}

/** Rolls back the transaction of a call that changed nothing, and with it the rows that were inserted to be locked. */
class NothingToCommit extends Error {
  readonly result: unknown

  constructor(result: unknown) {
    super('nothing to commit')
    this.result = result
  }
}

/** Implements `Database` over any drizzle PostgreSQL database: node-postgres here, PGlite in the tests. */
export function wrapPostgres(db: PostgresDatabase, close: () => Promise<void>): Database {
  // The builders have the same shape in both dialects; `postgresColumns` says why their values agree.
  const asExecutor = (executor: unknown) => executor as QueryExecutor

  async function write<T>(body: (tx: QueryExecutor) => Promise<T>): Promise<T> {
    try {
      return await db.transaction((tx) => body(asExecutor(tx)))
    } catch (error) {
      throw toCallerError(error)
    }
  }

  return {
    tables: defineTables(postgresColumns),
    admissionTable: defineAdmissionTable(postgresColumns),
    read: asExecutor(db),
    write,
    group<C>(calls: CallGroup<C>) {
      return async <R>(call: C) => {
        try {
          return await write(async (tx) => {
            // The result of this very call.
            const result = (await calls.decide(tx, call)) as R
            if (!calls.hasChanges(tx)) throw new NothingToCommit(result)
            await calls.write(tx)
            return result
          })
        } catch (error) {
          if (error instanceof NothingToCommit) return error.result as R
          throw error
        }
      }
    },
    prepare(build) {
      let statement: ReturnType<ReturnType<typeof build>['prepare']> | undefined
      return (values) => (statement ??= build().prepare()).execute(values)
    },
    shortId: (id) => id,
    matchesShortId: (id, shortId) => eq(id, shortId),
    async lock(tx, table, idColumn, id) {
      const select = (tx as unknown as NodePgDatabase).select({ one: sql`1` })
      const rows = await select
        .from(table as never)
        .where(eq(idColumn, id))
        .for('update')
      return rows.length === 0 ? 'missing' : 'locked'
    },
    isConcurrent: true,
    partitions,
    secureDelete: () => {},
    overwriteFreeSpace: () => Promise.resolve(true),
    skipLocked: sql.raw('for no key update skip locked'),
    close,
  }
}
