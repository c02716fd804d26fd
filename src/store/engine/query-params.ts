import { sql, type SQL } from 'drizzle-orm'
import type { Database, Preparable } from './database.ts'

// For prepared statements that order their rows. There SQLite would look into a bare placeholder for a better plan, and
// so prepare the statement anew for every value: five times what running it takes.

export const textParam = (name: string) => sql<string>`cast(${sql.placeholder(name)} as text)`

/** Of 64 bits. */
export const integerParam = (name: string) => sql<number>`cast(${sql.placeholder(name)} as bigint)`

/** The last part of an order of which only the first row is wanted. drizzle's own `limit` is a placeholder. */
export const orderByLimit1 = (order: SQL) => sql`${order} limit 1`

/** The last part of an order of which so many rows are wanted. */
export const orderByLimit = (order: SQL, limit: SQL) => sql`${order} limit ${limit}`

type Value = string | number
type Filter = { [name: string]: Value | readonly Value[] | undefined }

/** The same filter with a place for each value that is given. */
export type FilterPlaceholders<F> = {
  [K in keyof F]:
    Extract<F[K], undefined> | (Exclude<F[K], undefined> extends readonly unknown[] ? SQL[] : SQL)
}

/**
 * Prepares a query of optional filters: once for each combination of them that is asked for, as building it costs more
 * than a page of rows.
 *
 * @param build looks at which filters are given; the value of one is not known yet
 */
export function prepareFiltered<F extends Filter, R>(
  database: Database,
  build: (placeholders: FilterPlaceholders<F>) => Preparable<R>,
): (filter: F) => Promise<R> {
  const preparedQueries = new Map<string, (values: Record<string, unknown>) => Promise<R>>()
  return (filter) => {
    const { values, cacheKey } = bindFilter(filter)
    let query = preparedQueries.get(cacheKey)
    // Its properties are those of the filter, each with what `Given` says of its kind.
    if (!query)
      preparedQueries.set(
        cacheKey,
        (query = database.prepare(() => build(placeholdersFor(filter) as FilterPlaceholders<F>))),
      )
    return query(values)
  }
}

/** A value for each place, and a name for the places. */
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

/** The next power of two, so that there are few lengths; the rest is filled with the last value, which changes no `in`. */
const paddedLength = (values: readonly Value[]) => 2 ** Math.ceil(Math.log2(values.length))
