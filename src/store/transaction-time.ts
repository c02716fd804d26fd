import { sql } from 'drizzle-orm'
import type { Clock } from '../domain/model/clock.ts'
import type { Connection } from './engine/connection.ts'

/** The time of a PostgreSQL server in milliseconds: not that at which its transaction began. */
const currentTime = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
const databaseTime = sql.raw(currentTime)

/** A setting of the transaction: statements that are sent together share one time. */
const setting = 'otpd.now'

/** Reads the time of a PostgreSQL server, and keeps it for `loadedAt`. */
export const readLoadTime = sql.raw(`set_config('${setting}', (${currentTime})::text, true)`)

/** The time that `readLoadTime` has read in this transaction. */
export const loadedAt = sql.raw(`nullif(current_setting('${setting}', true), '')::bigint`)

/**
 * Returns the time of a transaction in milliseconds. On PostgreSQL it is the database's, which all nodes share; `clock` is
 * the process's, for SQLite and for tests. A clock that follows the database is not asked.
 */
export async function transactionTime(
  { database, executor }: Connection,
  clock: Clock | undefined,
): Promise<number> {
  if (clock && !clock.follow) return clock.now()
  if (database.sqlite) return database.world.now()
  const { counters } = database.tables
  const [row] = await executor
    .select({ now: sql`${databaseTime}`.mapWith(Number) })
    .from(counters)
    .limit(1)
  if (!row) throw new Error('the counter of log entries is missing')
  return row.now
}
