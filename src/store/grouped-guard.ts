import { sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { GuardFault } from '../domain/model/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { toCountry, toCounts } from './guard-rows.ts'

/**
 * Creates the queries that read the guard's rows for many calls at once, on PostgreSQL. Those that lock also insert the
 * rows that are missing, as otherwise two calls could count the first message of a day.
 *
 * @throws GuardFault from each query
 */
export function createGroupedGuardQueries(database: Database, executor: QueryExecutor) {
  const { guardCountries: countries, guardCounts: counts, guardContexts: contexts } = database.tables
  const keys = sql`${sql.placeholder('keys')}::text[]`
  const unused = (others: SQL) => sql`select name, ${others} from unnest(${keys}) as keys(name)`

  const lockCountries = database.prepare(() =>
    executor
      .insert(countries)
      .select(unused(sql.raw(`'[]', 0, 0, 0`)))
      .onConflictDoUpdate(unchanged(countries.subject, 'alertUntil', countries.alertUntil))
      .returning(),
  )
  const lockCounts = database.prepare(() =>
    executor
      .insert(counts)
      .select(unused(sql.raw('0, 0, 0, 0, 0, 0')))
      .onConflictDoUpdate(unchanged(counts.subject, 'unverified', counts.unverified))
      .returning(),
  )
  const readCounts = database.prepare(() =>
    executor
      .select()
      .from(counts)
      .where(sql`${counts.subject} = any(${keys})`),
  )
  const readContexts = database.prepare(() =>
    executor
      .select()
      .from(contexts)
      .where(sql`${contexts.context} = any(${keys})`),
  )

  return {
    countries: failingOpen(async (subjects) => {
      const rows = await lockCountries({ keys: subjects })
      return new Map(rows.map((row) => [row.subject, toCountry(row)]))
    }),
    lockCounts: failingOpen(async (subjects) => toCounts(await lockCounts({ keys: subjects }))),
    readCounts: failingOpen(async (subjects) => toCounts(await readCounts({ keys: subjects }))),
    contexts: failingOpen(
      async (names) =>
        new Map((await readContexts({ keys: names })).map(({ context, day }) => [context, day])),
    ),
  }
}

/** Locks a row that exists, and returns it as the last transaction left it. */
const unchanged = (target: SQLiteColumn, name: string, column: SQLiteColumn) =>
  // One column of any table, which the compiler cannot follow.
  ({ target, set: { [name]: sql`${column}` } }) as never

/** The guard fails open: its errors are told apart from others. */
const failingOpen =
  <T>(read: (keys: readonly string[]) => Promise<T>) =>
  (keys: readonly string[]): Promise<T> =>
    read(keys).catch((error) => Promise.reject(new GuardFault(error)))
