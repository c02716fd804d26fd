import { and, asc, eq, gte, lt, sql } from 'drizzle-orm'
import type { LogEntry } from '../domain/model/log-entry.ts'
import type { EventStore } from '../domain/store/events.ts'
import type { Connection } from './engine/connection.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import { loadEventIds } from './event-ids.ts'

/** More numbers than all nodes give out between the write of a request and that of its entries. */
const nearRange = 20_000

/** Creates the query that finds the log entries of a request by their positions. */
export function createEventLocator(connection: Connection): EventStore['locate'] {
  const { database, executor } = connection
  const { events } = database.tables
  const columns = { seq: events.seq, id: events.id, at: events.at }
  const findEntries = prepareFiltered(
    database,
    ({ seqs, requestId }: FilterPlaceholders<{ seqs: readonly number[]; requestId: string }>) =>
      executor
        .select(columns)
        .from(events)
        .where(and(sql`${events.seq} in ${seqs}`, eq(events.requestId, requestId))),
  )
  type NearFilter = {
    from: number
    to: number
    appId: string | number
    type: LogEntry['type']
    requestId: string
    limit: number
  }
  // PostgreSQL: entries that were appended soon after the counter was read. There is no index on the request, but one on
  // the types of an application.
  const findNearEntries = prepareFiltered(
    database,
    ({ from, to, appId, type, requestId, limit }: FilterPlaceholders<NearFilter>) =>
      executor
        .select(columns)
        .from(events)
        .where(
          and(
            eq(events.appId, appId),
            eq(events.type, type),
            gte(events.seq, from),
            lt(events.seq, to),
            eq(events.requestId, requestId),
          ),
        )
        .orderBy(orderByLimit(asc(events.seq), limit)),
  )

  return async ({ id: requestId, appId }, positions) => {
    const ids = await loadEventIds(connection)
    const exact = positions.flatMap(({ seq, isExact }) => (isExact ? [seq] : []))
    const near = Map.groupBy(
      positions.filter(({ isExact }) => !isExact),
      ({ seq, type }) => `${seq} ${type}`,
    )
    const found = exact.length === 0 ? [] : await findEntries({ seqs: exact, requestId })
    const queries = [...near.values()].flatMap(([first, ...others]) => {
      if (!first) return []
      const { seq: from, type } = first
      const ofApplication = { appId: database.shortId(appId), type, requestId }
      return [findNearEntries({ from, to: from + nearRange, limit: others.length + 1, ...ofApplication })]
    })
    const rest = (await Promise.all(queries)).flat()
    const taken = new Set<number>()
    return positions.map(({ seq, isExact, at }) => {
      // By its time too: the log may have deleted the entry, and have later ones.
      const row = isExact
        ? found.find((one) => one.seq === seq)
        : rest.find((one) => one.seq >= seq && one.at === at && !taken.has(one.seq))
      if (!row) return undefined
      taken.add(row.seq)
      return { seq: row.seq, id: row.id ?? ids.encode(row.at, row.seq) }
    })
  }
}
