import { sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Database, Preparable, PreparedQuery } from './database.ts'

// Typed placeholders, for prepared statements with an `order by`. For a bare placeholder there, SQLite reads the
// value to choose a better plan, and so prepares the statement again for every value: five times the cost of running
// it.

/** A text placeholder. */
export const textParam = (name: string) => sql<string>`cast(${sql.placeholder(name)} as text)`

/** A 64-bit integer placeholder. */
export const integerParam = (name: string) => sql<number>`cast(${sql.placeholder(name)} as bigint)`

/** Ends an `order by` with a typed limit. drizzle's own `limit` would be a bare placeholder. */
export const orderByLimit = (order: SQL, limit: SQL) => sql`${order} limit ${limit}`

/**
 * Condition of SQLite that a column has one of the values of a JSON array. A placeholder for each value would take
 * longer to bind than its row to read.
 */
export const inJson = (column: SQLiteColumn, values: SQL) =>
  sql`${column} in (select value from json_each(${values}))`

type Value = string | number
type Filter = { [name: string]: Value | readonly Value[] | undefined }

/** The filter with placeholders for the values that are set. */
export type FilterPlaceholders<F> = {
  [K in keyof F]:
    Extract<F[K], undefined> | (Exclude<F[K], undefined> extends readonly unknown[] ? SQL[] : SQL)
}

/**
 * Prepares a query with optional filters, once for each combination in use: building a query costs more than reading a
 * page of rows.
 *
 * @param build gets placeholders for the filters that are set; it cannot see their values
 */
export function prepareFiltered<F extends Filter, R>(
  database: Database,
  build: (placeholders: FilterPlaceholders<F>) => Preparable<R>,
): (filter: F) => Promise<R> {
  const preparedQueries = new Map<string, PreparedQuery<R>>()
  return (filter) => {
    const { values, cacheKey } = bindFilter(filter)
    let query = preparedQueries.get(cacheKey)
    // `placeholdersFor` returns exactly the shape of FilterPlaceholders<F>.
    if (!query)
      preparedQueries.set(
        cacheKey,
        (query = database.prepare(() => build(placeholdersFor(filter) as FilterPlaceholders<F>))),
      )
    return query(values)
  }
}

/** Returns the value of each placeholder, and a cache key for the combination of filters. */
function bindFilter(filter: Filter) {
  const values: Record<string, Value> = {}
  let cacheKey = ''
  for (const name in filter) {
    const value = filter[name]
    if (value === undefined) continue
    if (typeof value === 'object') {
      const length = paddedLength(value)
      cacheKey += `${name}[${length}],`
      for (let i = 0; i < length; i++) values[name + i] = value[Math.min(i, value.length - 1)] ?? ''
    } else {
      cacheKey += `${name},`
      values[name] = value
    }
  }
  return { values, cacheKey }
}

function placeholdersFor(filter: Filter) {
  const placeholders: Record<string, SQL | SQL[]> = {}
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    placeholders[name] =
      typeof value === 'object'
        ? Array.from({ length: paddedLength(value) }, (_, i) => placeholderFor(name + i, value[0]))
        : placeholderFor(name, value)
  }
  return placeholders
}

const placeholderFor = (name: string, value: Value | undefined): SQL =>
  typeof value === 'number' ? integerParam(name) : textParam(name)

/**
 * The next power of two, which limits the number of statements. The last value is repeated, which does not affect
 * `in`.
 */
const paddedLength = (values: readonly Value[]) => 2 ** Math.ceil(Math.log2(values.length))
