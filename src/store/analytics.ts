import { and, count, eq, gte, ne, sql, type SQL } from 'drizzle-orm'
import type { AnalyticsStore, BreakdownRange, CountChanges } from '../domain/store/analytics.ts'
import type { Environment } from '../domain/model/application.ts'
import { type FilterPlaceholders, integerParam, prepareFiltered, textParam } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { pick } from '../shared/fields.ts'
import { addOnConflict, insertInto } from './engine/row-writes.ts'

// prettier-ignore
const dayCounts = [
  'requests', 'sent', 'verified', 'failed', 'active', 'testRequests', 'testSent', 'testVerified', 'testFailed', 'testActive',
] as const satisfies ReadonlyArray<keyof CountChanges>
const dayColumns = dayCounts.map((name) => name.replace('test', 'test_').toLowerCase())
const addDays = insertInto('daily_counts', ['developer_id', 'day', ...dayColumns], {
  onConflict: addOnConflict('daily_counts', ['day', 'developer_id'], dayColumns),
})

const breakdownNames = ['requests', 'sent', 'delivered', 'undelivered', 'verified', 'failed'] as const
const breakdownKeyNames = ['day', 'developer_id', 'app_id', 'country', 'channel', 'provider']
const addBreakdowns = insertInto('breakdown_counts', [...breakdownKeyNames, ...breakdownNames], {
  onConflict: addOnConflict('breakdown_counts', breakdownKeyNames, breakdownNames),
})

/** Stores daily counters. */
export function createAnalyticsStore(database: Database, executor: QueryExecutor): AnalyticsStore {
  const { dailyCounts: days, breakdownCounts: breakdown, applications } = database.tables
  const breakdownKey = [
    breakdown.day,
    breakdown.developerId,
    breakdown.appId,
    breakdown.country,
    breakdown.channel,
    breakdown.provider,
  ]
  const breakdownCounts = pick(breakdown, breakdownNames)
  const allCounts = {
    requests: days.requests,
    sent: days.sent,
    verified: days.verified,
    failed: days.failed,
    active: days.active,
  }
  const testCounts = {
    testRequests: days.testRequests,
    testSent: days.testSent,
    testVerified: days.testVerified,
    testFailed: days.testFailed,
    testActive: days.testActive,
  }
  const add = database.writeRows(executor, addDays)
  const addBreakdown = database.writeRows(executor, addBreakdowns)
  const sumOrZero = (value: SQL) => sql<number>`coalesce(sum(${value}), 0)`.mapWith(Number)
  const isOwn = eq(days.developerId, textParam('developerId'))
  const isActive = sql`${days.day} >= ${integerParam('activeSinceDay')}`

  /** A query for each environment, and for both. */
  const byEnvironment = <T>(build: (counts: DayColumns) => T) => ({
    all: build({ ...allCounts }),
    test: build({
      requests: testCounts.testRequests,
      sent: testCounts.testSent,
      verified: testCounts.testVerified,
      failed: testCounts.testFailed,
      active: testCounts.testActive,
    }),
    live: build({
      requests: sql`(${days.requests} - ${days.testRequests})`,
      sent: sql`(${days.sent} - ${days.testSent})`,
      verified: sql`(${days.verified} - ${days.testVerified})`,
      failed: sql`(${days.failed} - ${days.testFailed})`,
      active: sql`(${days.active} - ${days.testActive})`,
    }),
  })
  const totals = byEnvironment((columns) =>
    database.prepare(() =>
      executor
        .select({
          requests: sumOrZero(sql`${columns.requests}`),
          verified: sumOrZero(sql`${columns.verified}`),
          active: sumOrZero(sql`case when ${isActive} then ${columns.active} else 0 end`),
        })
        .from(days)
        .where(isOwn),
    ),
  )
  const listDays = byEnvironment((columns) =>
    database.prepare(() =>
      executor
        .select({
          day: days.day,
          sent: sql<number>`${columns.sent}`.mapWith(Number),
          verified: sql<number>`${columns.verified}`.mapWith(Number),
          failed: sql<number>`${columns.failed}`.mapWith(Number),
        })
        .from(days)
        .where(and(isOwn, gte(days.day, integerParam('firstDay')))),
    ),
  )
  const countApplications = prepareFiltered(
    database,
    ({ developerId, environment }: FilterPlaceholders<ApplicationFilter>) =>
      executor
        .select({ count: count() })
        .from(applications)
        .where(
          and(
            eq(applications.developerId, developerId),
            environment && eq(applications.environment, environment),
          ),
        ),
  )

  const findNames = prepareFiltered(
    database,
    ({ developerId, appIds }: FilterPlaceholders<{ developerId: string; appIds: readonly string[] }>) =>
      executor
        .select({ id: applications.id, name: applications.name })
        .from(applications)
        .where(and(eq(applications.developerId, developerId), sql`${applications.id} in ${appIds}`)),
  )

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
  const breakdownSums = Object.fromEntries(
    Object.entries(breakdownCounts).map(([name, column]) => [name, sumOrZero(sql`${column}`)]),
  ) as Record<keyof typeof breakdownCounts, ReturnType<typeof sumOrZero>>
  const listDaysOfApplication = prepareFiltered(
    database,
    ({ appId, country, channel, ...range }: FilterPlaceholders<ApplicationRangeFilter>) =>
      executor
        .select({
          day: breakdown.day,
          sent: breakdownSums.sent,
          verified: breakdownSums.verified,
          failed: breakdownSums.failed,
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
  const sumUp = (column: (typeof breakdownKey)[number]) =>
    prepareFiltered(database, (range: FilterPlaceholders<RangeFilter>) =>
      executor
        .select({ key: sql<string>`${column}`.mapWith(column), ...breakdownSums })
        .from(breakdown)
        .where(isOwnBreakdown(range))
        .groupBy(column),
    )
  const sums = {
    application: sumUp(breakdown.appId),
    country: sumUp(breakdown.country),
    channel: sumUp(breakdown.channel),
    provider: sumUp(breakdown.provider),
  }

  return {
    add: (days) =>
      add(
        days.map(({ developerId, day, counts }) => [
          developerId,
          day,
          ...dayCounts.map((name) => counts[name] ?? 0),
        ]),
      ),

    addBreakdown: (rows) =>
      addBreakdown(
        rows.map(({ key, counts }) => [
          key.day,
          database.shortId(key.developerId),
          database.shortId(key.appId),
          key.country ?? '',
          key.channel ?? '',
          key.provider ?? '',
          ...breakdownNames.map((name) => counts[name] ?? 0),
        ]),
      ),

    async deleteBreakdown(beforeDay, batchSize) {
      const names = sql.join(
        breakdownKey.map(({ name }) => sql.identifier(name)),
        sql`, `,
      )
      const oldest = sql`select ${names} from breakdown_counts where day < ${beforeDay} order by ${names} limit ${batchSize}`
      const deleted = await executor
        .delete(breakdown)
        .where(sql`(${names}) in (${oldest})`)
        .returning({ day: breakdown.day })
      return deleted.length > 0
    },

    countryDays: (firstDay) => listCountryDays(database, executor, firstDay),

    async totals(developerId, environment, activeSinceDay) {
      const [row] = await totals[environment ?? 'all']({ developerId, activeSinceDay })
      return row ?? { requests: 0, verified: 0, active: 0 }
    },

    days: async (developerId, environment, firstDay) =>
      listDays[environment ?? 'all']({ developerId, firstDay }),

    daysOfApplication: async (developerId, appId, range) =>
      listDaysOfApplication({
        country: undefined,
        channel: undefined,
        ...range,
        developerId: database.shortId(developerId),
        appId: database.shortId(appId),
      }),

    async breakdown(developerId, by, range) {
      const rows = await sums[by]({ ...range, developerId: database.shortId(developerId) })
      return rows.map((row) => ({ ...row, key: row.key === '' ? null : String(row.key) }))
    },

    async applicationNames(developerId, appIds) {
      if (appIds.length === 0) return new Map()
      const rows = await findNames({ developerId, appIds })
      return new Map(rows.map(({ id, name }) => [id, name]))
    },

    async countApplications(developerId, environment) {
      const [row] = await countApplications({ developerId, environment })
      return row?.count ?? 0
    },
  }
}

type ApplicationFilter = { developerId: string; environment: Environment | undefined }

type RangeFilter = BreakdownRange & { developerId: string | number }

type ApplicationRangeFilter = RangeFilter & {
  appId: string | number
  country: string | undefined
  channel: string | undefined
}

/** Sums up live messages by country and day. Messages of test applications have no provider. */
function listCountryDays(
  { tables: { breakdownCounts: counts } }: Database,
  executor: QueryExecutor,
  firstDay: number,
) {
  const { country, day, provider } = counts
  const sent = sql<number>`sum(${counts.sent})`.mapWith(Number)
  const verified = sql<number>`sum(${counts.verified})`.mapWith(Number)
  const isLive = and(gte(day, firstDay), ne(country, ''), ne(provider, ''))
  return executor.select({ country, day, sent, verified }).from(counts).where(isLive).groupBy(country, day)
}

type DayColumns = Record<'requests' | 'sent' | 'verified' | 'failed' | 'active', unknown>
