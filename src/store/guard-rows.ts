import { eq, inArray, lt, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { GuardFault, type GuardCountry, type GuardCounts } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import { inKeyOrder } from './engine/key-order.ts'
import { addAll, columnNames, replaceAll } from './engine/row-writes.ts'
import type { QueryExecutor, Database, PreparedQuery } from './engine/database.ts'
import { andThen, type Awaitable } from '../domain/model/awaitable.ts'

const toError = (error: unknown) => new GuardFault(error)

/** Creates the queries that read the guard's rows before a call, and write them after it. */
export function createGuardRows(
  database: Database,
  executor: QueryExecutor,
): Pick<GuardStore, 'country' | 'counts' | 'contexts' | 'apply'> {
  const { guardCountries: countries, guardCounts: counts, guardContexts: contexts } = database.tables
  const { guardDecisions: decisions } = database.tables
  const p = sql.placeholder

  const countryColumns = {
    windows: countries.windows,
    alertUntil: countries.alertUntil,
    converts: countries.converts,
    day: countries.day,
  }
  const selectCountry = database.prepare(() =>
    executor
      .select(countryColumns)
      .from(countries)
      .where(eq(countries.subject, p('subject'))),
  )
  const putCountry = writeWhole(countries, countries.subject)

  const selectCounts = preparePerLength((keys) =>
    database.prepare(() => executor.select().from(counts).where(inArray(counts.subject, keys))),
  )
  const putCounts = writeWhole(counts, counts.subject)

  const selectContexts = preparePerLength((keys) =>
    database.prepare(() => executor.select().from(contexts).where(inArray(contexts.context, keys))),
  )
  // Once a day, so that most verifications of a known context write nothing here.
  const putContext = writeWhole(contexts, contexts.context, lt(contexts.day, sql`excluded.day`))
  const addDecision = database.writeRows(executor, {
    kind: 'insert',
    table: decisions,
    columns: columnNames(decisions),
    onConflict: addAll([decisions.hour, decisions.rule, decisions.country], {
      flagged: decisions.flagged,
      blocked: decisions.blocked,
    }),
    toError,
  })

  /** Writes rows whole, whether they exist or not. */
  function writeWhole(table: SQLiteTable, key: SQLiteColumn, setWhere?: SQL) {
    const onConflict = replaceAll(table, [key], setWhere && { setWhere })
    const columns = columnNames(table)
    return database.writeRows(executor, { kind: 'insert', table, columns, onConflict, toError })
  }

  return {
    country: (subject) => andThen(selectCountry({ subject }), ([row]) => row && toCountry(row)),

    counts: (locked, others) => andThen(selectCounts([...locked, ...others]), toCounts),

    contexts: (names) =>
      andThen(selectContexts(names), (rows) => new Map(rows.map(({ context, day }) => [context, day]))),

    async apply(changes) {
      try {
        const toRow = (subject: string, { windows, converts, ...country }: GuardCountry) => ({
          subject,
          windows: JSON.stringify(windows),
          converts: converts ? 1 : 0,
          ...country,
        })
        for (const row of toRows(changes.countries, toRow)) await putCountry(row)
        for (const row of toRows(changes.counts, (subject, row) => ({ ...row, subject })))
          await putCounts(row)
        for (const row of toRows(changes.contexts, (context, day) => ({ context, day })))
          await putContext(row)
        for (const decision of toRows(changes.decisions, (_, row) => row)) await addDecision(decision)
      } catch (error) {
        throw new GuardFault(error)
      }
    },
  }
}

/** `apply` alone writes the row. */
export const toCountry = ({ windows, alertUntil, converts, day }: CountryRow): GuardCountry => ({
  windows: JSON.parse(windows) as number[][],
  alertUntil,
  converts: converts === 1,
  day,
})

type CountryRow = Omit<GuardCountry, 'windows' | 'converts'> & { windows: string; converts: number }

export function toCounts(rows: ReadonlyArray<GuardCounts & { subject: string }>): Map<string, GuardCounts> {
  const found = new Map<string, GuardCounts>()
  for (const row of rows) if (!isUnused(row)) found.set(row.subject, row)
  return found
}

/** Tells whether counts were inserted for the lock alone, and nothing was counted. */
export const isUnused = ({ unverified, firstAt }: Pick<GuardCounts, 'unverified' | 'firstAt'>) =>
  unverified === 0 && firstAt === 0

const toRows = <V, R>(rows: ReadonlyMap<string, V>, toRow: (key: string, value: V) => R): R[] =>
  Array.from(inKeyOrder(rows), ([key, value]) => toRow(key, value))

/** Prepares a query on a list of keys for each length that occurs: at most five. */
function preparePerLength<R>(
  prepare: (keys: Array<ReturnType<typeof sql.placeholder>>) => PreparedQuery<R[]>,
): (keys: readonly string[]) => Awaitable<R[]> {
  const byLength: Array<PreparedQuery<R[]>> = []
  return (keys) => {
    if (keys.length === 0) return []
    const query = (byLength[keys.length] ??= prepare(keys.map((_, index) => sql.placeholder(`key${index}`))))
    return query(Object.fromEntries(keys.map((key, index) => [`key${index}`, key])))
  }
}
