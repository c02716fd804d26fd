import { and, eq, ne, sql, type SQL } from 'drizzle-orm'
import type {
  AnalyticsStore,
  BreakdownChanges,
  BreakdownCount,
  BreakdownKey,
  BreakdownRange,
} from '../domain/store/analytics.ts'
import { keysOf } from '../shared/fields.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { type FilterPlaceholders, prepareFiltered } from './engine/query-params.ts'
import { columnsOf, countReaders, insertInto } from './engine/row-writes.ts'

/** Fields of the primary key; all others are counts. */
const keyFields = ['day', 'developerId', 'appId', 'country', 'channel', 'provider'] as const

/** Costs of days before `costsFrom` are in another currency. */
const costNames: ReadonlySet<BreakdownCount> = new Set<BreakdownCount>([
  'cost',
  'estimatedCost',
  'unpriced',
  'relayedCost',
])

/** Name in `meta` of the currency of costs, and of the first day whose costs are in no other. */
const costCurrencyName = 'cost_currency'

type BreakdownStore = Omit<
  AnalyticsStore,
  'add' | 'totals' | 'days' | 'applicationNames' | 'countApplications'
>

export const sumOrZero = (value: SQL) => sql<number>`coalesce(sum(${value}), 0)`.mapWith(Number)

/** Stores daily counters by application, country, channel and provider. */
export function createBreakdownStore(connection: Connection): BreakdownStore {
  const { database, executor } = connection
  const { breakdownCounts: breakdown, meta } = database.tables
  const breakdownKey = keyFields.map((name) => breakdown[name])
  const counts = countReaders(breakdown, keyFields)
  const columns = columnsOf<typeof breakdown, BreakdownKey & { counts: BreakdownChanges }>(breakdown, {
    country: ({ country }) => country ?? '',
    channel: ({ channel }) => channel ?? '',
    provider: ({ provider }) => provider ?? '',
    ...counts,
  })
  const addRows = database.writeRows(
    executor,
    insertInto(columns, { onConflict: { key: keyFields, others: 'add' } }),
  )
  const findMeta = prepareFind(connection, meta, 'name')
  // The key begins with the day, so that each day is a place of its own.
  const isOwnBreakdown = ({ developerId, firstDay, lastDay, environment }: FilterPlaceholders<RangeFilter>) =>
    and(
      sql`${breakdown.day} in (
        with recursive range (day) as (
          select ${firstDay} union all select day + 1 from range where day < ${lastDay}
        ) select day from range)`,
      eq(breakdown.developerId, developerId),
      // Only requests of test applications have no channel.
      environment && sql`case ${breakdown.channel} when '' then 'test' else 'live' end = ${environment}`,
    )
  const sumsFrom = (costsFrom: SQL) =>
    Object.fromEntries(
      keysOf(counts).map((name) => [
        name,
        sumOrZero(
          costNames.has(name)
            ? sql`case when ${breakdown.day} >= ${costsFrom} then ${breakdown[name]} else 0 end`
            : sql`${breakdown[name]}`,
        ),
      ]),
    ) as Record<BreakdownCount, ReturnType<typeof sumOrZero>>
  const listDaysOfApplication = prepareFiltered(
    database,
    ({ appId, country, channel, ...range }: FilterPlaceholders<ApplicationRangeFilter>) =>
      executor
        .select({
          day: breakdown.day,
          sent: sumOrZero(sql`${breakdown.sent}`),
          verified: sumOrZero(sql`${breakdown.verified}`),
          failed: sumOrZero(sql`${breakdown.failed}`),
        })
        .from(breakdown)
        .where(
          and(
            isOwnBreakdown(range),
            eq(breakdown.appId, appId),
            country && eq(breakdown.country, country),
            channel && eq(breakdown.channel, channel),
          ),
        )
        .groupBy(breakdown.day),
  )
  const sumUp = (value: SQL) =>
    prepareFiltered(
      database,
      ({ costsFrom, country, channel, provider, ...range }: FilterPlaceholders<SumFilter>) =>
        executor
          .select({ key: value, ...sumsFrom(sql`${costsFrom}`) })
          .from(breakdown)
          .where(
            and(
              isOwnBreakdown(range),
              country && eq(breakdown.country, country),
              channel && eq(breakdown.channel, channel),
              provider && eq(breakdown.provider, provider),
            ),
          )
          .groupBy(value),
    )
  const sumUpColumn = (column: (typeof breakdownKey)[number]) => sumUp(sql`${column}`.mapWith(column))
  const sums = {
    application: sumUpColumn(breakdown.appId),
    country: sumUpColumn(breakdown.country),
    channel: sumUpColumn(breakdown.channel),
    provider: sumUpColumn(breakdown.provider),
    cell: sumUp(sql`${breakdown.provider} || '/' || ${breakdown.channel} || '/' || ${breakdown.country}`),
  }

  return {
    addBreakdown: (rows) => addRows(rows.map(({ key, counts }) => ({ ...key, counts }))),

    async deleteBreakdown(beforeDay, batchSize) {
      const names = sql.join(
        breakdownKey.map(({ name }) => sql.identifier(name)),
        sql`, `,
      )
      const oldest = sql`select ${names} from breakdown_counts where day < ${beforeDay} order by ${names} limit ${batchSize}`
      return (await onTable(executor, breakdown).take(sql`(${names}) in (${oldest})`)).length > 0
    },

    countriesOfDay: (day) => listCountriesOfDay(connection, day),

    daysOfApplication: async (developerId, appId, range) =>
      listDaysOfApplication({
        country: undefined,
        channel: undefined,
        ...range,
        developerId: database.shortId(developerId),
        appId: database.shortId(appId),
      }),

    async costCurrency() {
      const row = await findMeta({ name: costCurrencyName })
      const [currency = '', since = ''] = row?.value.split(' ') ?? []
      return row && { currency, since: Number(since) }
    },

    async setCostCurrency({ currency, since }) {
      const value = `${currency} ${since}`
      await onTable(executor, meta).put(
        { name: costCurrencyName, value },
        { target: meta.name, set: { value } },
      )
    },

    async breakdown(developerId, by, { filter, ...range }) {
      const all = { country: undefined, channel: undefined, provider: undefined, ...filter }
      const rows = await sums[by]({ ...range, ...all, developerId: database.shortId(developerId) })
      return rows.map((row) => ({ ...row, key: row.key === '' ? null : String(row.key) }))
    },
  }
}

/** Sums up live messages of a day by country. Messages of test applications have no provider. */
function listCountriesOfDay({ database, executor }: Connection, ofDay: number) {
  const { breakdownCounts: counts } = database.tables
  const { country, day, provider } = counts
  const isLive = and(eq(day, ofDay), ne(country, ''), ne(provider, ''))
  return executor
    .select({
      country,
      day,
      sent: sumOrZero(sql`${counts.sent}`),
      verified: sumOrZero(sql`${counts.verified}`),
    })
    .from(counts)
    .where(isLive)
    .groupBy(country, day)
}

type RangeFilter = BreakdownRange & { developerId: string | number }

type SumFilter = RangeFilter & { costsFrom: number } & Record<
    'country' | 'channel' | 'provider',
    string | undefined
  >

type ApplicationRangeFilter = RangeFilter & {
  appId: string | number
  country: string | undefined
  channel: string | undefined
}

/** Names a row by its key. */
export const breakdownRow = ({ day, developerId, appId, country, channel, provider }: BreakdownKey) =>
  `${day} ${developerId} ${appId} ${country} ${channel} ${provider}`

/** Adds counts to those so far, which may have others. */
export function addCounts<Row extends { counts: Record<string, number | undefined> }>(
  rows: Map<string, Row>,
  key: string,
  row: Row,
): void {
  const before = rows.get(key)
  if (!before) return void rows.set(key, row)
  const sums = { ...before.counts }
  for (const name in row.counts) sums[name] = (sums[name] ?? 0) + (row.counts[name] ?? 0)
  rows.set(key, { ...row, counts: sums })
}
