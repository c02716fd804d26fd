import { and, asc, desc, eq, gt, lt, sql } from 'drizzle-orm'
import { scanRowsMax } from '../domain/model/pagination.ts'
import type { ScanLimitStore } from '../domain/store/scan-limit.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'

type Id = string | number
type ById = { owner: Id; before?: string }
type BySeq = { owner: Id; before?: number }

/** Finds the row after which the scan of a filtered page stops, `scanRowsMax` rows away. */
export function createScanLimitStore(database: Database, executor: QueryExecutor): ScanLimitStore {
  const { otpRequests: otp, events, auditEntries: entries, webhookDeliveries: deliveries } = database.tables
  const scanLimitClause = sql.raw(`1 offset ${scanRowsMax - 1}`)

  const prepareRequestScan = (column: typeof otp.appId | typeof otp.developerId) =>
    prepareFiltered(database, ({ owner, before }: FilterPlaceholders<ById>) =>
      executor
        .select({ key: otp.id })
        .from(otp)
        .where(and(eq(column, owner), before && lt(otp.id, before)))
        .orderBy(orderByLimit(desc(otp.id), scanLimitClause)),
    )
  const requestScans = { app: prepareRequestScan(otp.appId), developer: prepareRequestScan(otp.developerId) }
  // A separate query, so that the scan is answered from an index alone.
  const findOwner = prepareFiltered(database, ({ id }: FilterPlaceholders<{ id: string }>) =>
    executor.select({ developerId: otp.developerId }).from(otp).where(eq(otp.id, id)),
  )

  const prepareEventScan = (column: typeof events.appId | typeof events.developerId) =>
    prepareFiltered(database, ({ owner, before }: FilterPlaceholders<BySeq>) =>
      executor
        .select({ key: events.seq, developerId: events.developerId })
        .from(events)
        .where(and(eq(column, owner), before && lt(events.seq, before)))
        .orderBy(orderByLimit(desc(events.seq), scanLimitClause)),
    )
  const eventScans = { app: prepareEventScan(events.appId), developer: prepareEventScan(events.developerId) }
  const prepareForwardEventScan = (column: typeof events.appId | typeof events.developerId) =>
    prepareFiltered(database, ({ owner, after }: FilterPlaceholders<{ owner: Id; after: number }>) =>
      executor
        .select({ ...eventIdColumns(events), developerId: events.developerId })
        .from(events)
        .where(and(eq(column, owner), gt(events.seq, after)))
        .orderBy(orderByLimit(asc(events.seq), scanLimitClause)),
    )
  const forwardEventScans = {
    app: prepareForwardEventScan(events.appId),
    developer: prepareForwardEventScan(events.developerId),
  }

  const auditScan = prepareFiltered(database, ({ owner, before }: FilterPlaceholders<ById>) =>
    executor
      .select({ key: entries.id })
      .from(entries)
      .where(and(eq(entries.developerId, owner), before && lt(entries.id, before)))
      .orderBy(orderByLimit(desc(entries.id), scanLimitClause)),
  )
  const deliveryScan = prepareFiltered(database, ({ owner, before }: FilterPlaceholders<ById>) =>
    executor
      .select({ key: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.endpointId, owner), before && lt(deliveries.id, before)))
      .orderBy(orderByLimit(desc(deliveries.id), scanLimitClause)),
  )
  const beforeFilter = <K>(before: K | undefined) => (before === undefined ? {} : { before })

  /** Scans the rows of the application if one is given, otherwise those of the developer. */
  async function findBoundary<F, R>(
    scans: Record<'app' | 'developer', (filter: F & { owner: Id }) => Promise<R[]>>,
    { developerId, appId }: { developerId: string; appId?: string | undefined },
    filter: F,
  ): Promise<R | undefined> {
    const scan = appId === undefined ? scans.developer : scans.app
    const [boundary] = await scan({ ...filter, owner: database.shortId(appId ?? developerId) })
    return boundary
  }

  return {
    async forRequests(owner, before) {
      const boundary = await findBoundary(requestScans, owner, beforeFilter(before))
      const [ownerRow] = boundary ? await findOwner({ id: boundary.key }) : []
      return boundary && ownerRow && { key: boundary.key, developerId: ownerRow.developerId }
    },

    forEvents: (owner, before) => findBoundary(eventScans, owner, beforeFilter(before)),

    async forEventsForward(owner, after) {
      const boundary = await findBoundary(forwardEventScans, owner, { after })
      if (!boundary) return undefined
      const { eventId } = withEventId(await loadEventIds(database, executor), boundary)
      return { key: boundary.eventSeq, id: eventId, developerId: boundary.developerId }
    },

    async forAudit(developerId, before) {
      const [boundary] = await auditScan({ owner: developerId, ...beforeFilter(before) })
      return boundary?.key
    },

    async forDeliveries(endpointId, before) {
      const [boundary] = await deliveryScan({ owner: endpointId, ...beforeFilter(before) })
      return boundary?.key
    },
  }
}
