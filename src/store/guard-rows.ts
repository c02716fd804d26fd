import { eq, getTableColumns, inArray, lt, sql, type SQL } from 'drizzle-orm'
import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { GuardFault, type GuardCountry, type GuardCounts } from '../domain/model/guard.ts'
import type { GuardStore } from '../domain/store/guard.ts'
import { inKeyOrder } from './engine/key-order.ts'
import type { QueryExecutor, Database, PreparedQuery } from './engine/database.ts'

const unusedCounts = { unverified: 0, verified: 0, slot: 0, pending: 0, pendingBefore: 0, firstAt: 0 }

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
  // One statement that creates or locks the row, and returns it as the last transaction left it.
  const lockCountry = database.prepare(() =>
    executor
      .insert(countries)
      .values({ subject: p('subject'), windows: '[]', alertUntil: 0, converts: 0, day: 0 })
      .onConflictDoUpdate({
        target: countries.subject,
        set: { alertUntil: sql`${countries.alertUntil}` },
      })
      .returning(countryColumns),
  )
  const putCountries = createUpsert(database, executor, countries, countries.subject)

  const selectCounts = preparePerLength((keys) =>
    database.prepare(() => executor.select().from(counts).where(inArray(counts.subject, keys))),
  )
  const lockCounts = preparePerLength((keys) =>
    database.prepare(() =>
      executor
        .insert(counts)
        .values(keys.map((subject) => ({ subject, ...unusedCounts })))
        .onConflictDoUpdate({ target: counts.subject, set: { unverified: sql`${counts.unverified}` } })
        .returning(),
    ),
  )
  const putCounts = createUpsert(database, executor, counts, counts.subject)

  const selectContexts = preparePerLength((keys) =>
    database.prepare(() => executor.select().from(contexts).where(inArray(contexts.context, keys))),
  )
  // Once a day, so that most verifications of a known context write nothing here.
  const putContexts = createUpsert(
    database,
    executor,
    contexts,
    contexts.context,
    lt(contexts.day, sql`excluded.day`),
  )
  const addDecision = database.prepare(() =>
    executor
      .insert(decisions)
      .values({
        hour: p('hour'),
        rule: p('rule'),
        country: p('country'),
        flagged: p('flagged'),
        blocked: p('blocked'),
      })
      .onConflictDoUpdate({
        target: [decisions.hour, decisions.rule, decisions.country],
        set: {
          flagged: sql`${decisions.flagged} + excluded.flagged`,
          blocked: sql`${decisions.blocked} + excluded.blocked`,
        },
      }),
  )

  return {
    async country(subject) {
      const [row] = await (database.isConcurrent ? lockCountry : selectCountry)({ subject })
      // Written by `apply` alone.
      return row && { ...row, windows: JSON.parse(row.windows) as number[][], converts: row.converts === 1 }
    },

    async counts(locked, others) {
      const rows = database.isConcurrent
        ? [...(await lockCounts(locked)), ...(await selectCounts(others))]
        : await selectCounts([...locked, ...others])
      const found = new Map<string, GuardCounts>()
      for (const row of rows) if (!isUnused(row)) found.set(row.subject, row)
      return found
    },

    async contexts(names) {
      const found = new Map<string, number>()
      for (const { context, day } of await selectContexts(names)) found.set(context, day)
      return found
    },

    async apply(changes) {
      try {
        const toRow = (subject: string, { windows, converts, ...country }: GuardCountry) => ({
          subject,
          windows: JSON.stringify(windows),
          converts: converts ? 1 : 0,
          ...country,
        })
        await putCountries(toRows(changes.countries, toRow))
        await putCounts(toRows(changes.counts, (subject, row) => ({ ...row, subject })))
        await putContexts(toRows(changes.contexts, (context, day) => ({ context, day })))
        for (const decision of toRows(changes.decisions, (_, row) => row)) await addDecision(decision)
      } catch (error) {
        throw new GuardFault(error)
      }
    },
  }
}

/** Tells whether counts were inserted for the lock alone, and nothing was counted. */
export const isUnused = ({ unverified, firstAt }: Pick<GuardCounts, 'unverified' | 'firstAt'>) =>
  unverified === 0 && firstAt === 0

const toRows = <V, R>(rows: ReadonlyMap<string, V>, toRow: (key: string, value: V) => R): R[] =>
  Array.from(inKeyOrder(rows), ([key, value]) => toRow(key, value))

/** Prepares a query on a list of keys for each length that occurs: at most five. */
function preparePerLength<R>(
  prepare: (keys: Array<ReturnType<typeof sql.placeholder>>) => PreparedQuery<R[]>,
): (keys: readonly string[]) => Promise<R[]> {
  const byLength: Array<PreparedQuery<R[]>> = []
  return async (keys) => {
    if (keys.length === 0) return []
    const query = (byLength[keys.length] ??= prepare(keys.map((_, index) => sql.placeholder(`key${index}`))))
    return query(Object.fromEntries(keys.map((key, index) => [`key${index}`, key])))
  }
}

/**
 * Creates the writer of whole rows. On PostgreSQL they go in one statement; on SQLite in one each, which costs the same
 * and can be prepared.
 */
function createUpsert<T extends SQLiteTable>(
  database: Database,
  executor: QueryExecutor,
  table: T,
  target: SQLiteColumn,
  setWhere?: SQL,
): (rows: ReadonlyArray<T['$inferInsert']>) => Promise<void> {
  // Built when they are first used: on PostgreSQL each transaction has its own stores.
  const columns = () => Object.entries(getTableColumns(table))
  const build = (values: Array<T['$inferInsert']>) => {
    const others = columns().filter(([, column]) => column !== target)
    const excluded = others.map(([name, column]) => [name, sql`excluded.${sql.identifier(column.name)}`])
    // The columns of any table, which the compiler cannot follow.
    const conflict = { target, set: Object.fromEntries(excluded), setWhere } as never
    return executor.insert(table).values(values).onConflictDoUpdate(conflict)
  }
  const putOne = database.prepare(() => {
    const placeholders = Object.fromEntries(columns().map(([name]) => [name, sql.placeholder(name)]))
    return build([placeholders as unknown as T['$inferInsert']])
  })
  return async (rows) => {
    if (database.isConcurrent) {
      if (rows.length > 0) await build([...rows])
    } else for (const row of rows) await putOne(row)
  }
}
