import { and, count, eq, gte, sql } from 'drizzle-orm'
import type { Environment } from '../domain/model/application.ts'
import type { AnalyticsStore } from '../domain/store/analytics.ts'
import { mapProperties, pick } from '../shared/fields.ts'
import { createBreakdownStore, sumOrZero } from './breakdown.ts'
import type { Connection } from './engine/connection.ts'
import { type FilterPlaceholders, integerParam, prepareFiltered, textParam } from './engine/query-params.ts'
import { columnsOf, countReaders, insertInto } from './engine/row-writes.ts'

/** Stores daily counters. */
export function createAnalyticsStore(connection: Connection): AnalyticsStore {
  const { database, executor } = connection
  const { dailyCounts: days, applications } = database.tables
  const allCounts = pick(days, ['requests', 'queued', 'verified', 'failed', 'active'])
  const testCounts: DayColumns = {
    requests: days.testRequests,
    queued: days.testQueued,
    verified: days.testVerified,
    failed: days.testFailed,
    active: days.testActive,
  }
  const columns = columnsOf<typeof days, Parameters<AnalyticsStore['add']>[0][number]>(days, {
    ...countReaders(days, ['developerId', 'day']),
  })
  const add = database.writeRows(
    executor,
    insertInto(columns, { onConflict: { key: ['day', 'developerId'], others: 'add' } }),
  )

  const isOwn = eq(days.developerId, textParam('developerId'))
  const isActive = sql`${days.day} >= ${integerParam('activeSinceDay')}`

  /** A query for each environment, and for both. */
  const byEnvironment = <T>(build: (counts: DayColumns) => T) => ({
    all: build(allCounts),
    test: build(testCounts),
    live: build(mapProperties(allCounts, (all, name) => sql`(${all} - ${testCounts[name]})`)),
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
          sent: sql<number>`${columns.queued}`.mapWith(Number),
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

  return {
    ...createBreakdownStore(connection),

    add,

    async totals(developerId, environment, activeSinceDay) {
      const [row] = await totals[environment ?? 'all']({ developerId, activeSinceDay })
      return row ?? { requests: 0, verified: 0, active: 0 }
    },

    days: async (developerId, environment, firstDay) =>
      listDays[environment ?? 'all']({ developerId, firstDay }),

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

type DayColumns = Record<'requests' | 'queued' | 'verified' | 'failed' | 'active', unknown>
