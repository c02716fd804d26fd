import { and, asc, desc, eq, gt, lt, sql } from 'drizzle-orm'
import { windowRows, type WindowStore } from '../domain/model/scan-limit.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { eventColumns, withEventId } from './engine/event-id-columns.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'

type Id = string | number
type ById = { owner: Id; before?: string }
type BySeq = { owner: Id; before?: number }

export function createWindowStore(database: Database, on: Builders): WindowStore {
  const { otpRequests: otp, events, auditEntries: entries, webhookDeliveries: deliveries } = database.tables
  const last = sql.raw(`1 offset ${windowRows - 1}`)

  const requestsOf = (column: typeof otp.appId | typeof otp.developerId) =>
    prepareFiltered(database, ({ owner, before }: Given<ById>) =>
      on
        .select({ key: otp.id })
        .from(otp)
        .where(and(eq(column, owner), before && lt(otp.id, before)))
        .orderBy(atMost(desc(otp.id), last)),
    )
  const requests = { app: requestsOf(otp.appId), developer: requestsOf(otp.developerId) }
  // Apart from the walk, which an index does alone.
  const ownerOf = prepareFiltered(database, ({ id }: Given<{ id: string }>) =>
    on.select({ developerId: otp.developerId }).from(otp).where(eq(otp.id, id)),
  )

  const eventsOf = (column: typeof events.appId | typeof events.developerId) =>
    prepareFiltered(database, ({ owner, before }: Given<BySeq>) =>
      on
        .select({ key: events.seq, developerId: events.developerId })
        .from(events)
        .where(and(eq(column, owner), before && lt(events.seq, before)))
        .orderBy(atMost(desc(events.seq), last)),
    )
  const log = { app: eventsOf(events.appId), developer: eventsOf(events.developerId) }
  const laterOf = (column: typeof events.appId | typeof events.developerId) =>
    prepareFiltered(database, ({ owner, after }: Given<{ owner: Id; after: number }>) =>
      on
        .select({ ...eventColumns(events), developerId: events.developerId })
        .from(events)
        .where(and(eq(column, owner), gt(events.seq, after)))
        .orderBy(atMost(asc(events.seq), last)),
    )
  const later = { app: laterOf(events.appId), developer: laterOf(events.developerId) }

  const audit = prepareFiltered(database, ({ owner, before }: Given<ById>) =>
    on
      .select({ key: entries.id })
      .from(entries)
      .where(and(eq(entries.developerId, owner), before && lt(entries.id, before)))
      .orderBy(atMost(desc(entries.id), last)),
  )
  const sent = prepareFiltered(database, ({ owner, before }: Given<ById>) =>
    on
      .select({ key: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.endpointId, owner), before && lt(deliveries.id, before)))
      .orderBy(atMost(desc(deliveries.id), last)),
  )
  const behind = <K>(before: K | undefined) => (before === undefined ? {} : { before })

  /** Walks through the rows of the application where one is named, and otherwise of the developer. */
  async function endOf<F, R>(
    walks: Record<'app' | 'developer', (filter: F & { owner: Id }) => Promise<R[]>>,
    { developerId, appId }: { developerId: string; appId?: string | undefined },
    where: F,
  ): Promise<R | undefined> {
    const walk = appId === undefined ? walks.developer : walks.app
    const [end] = await walk({ ...where, owner: database.shortId(appId ?? developerId) })
    return end
  }

  return {
    async ofRequests(of, before) {
      const end = await endOf(requests, of, behind(before))
      const [owner] = end ? await ownerOf({ id: end.key }) : []
      return end && owner && { key: end.key, developerId: owner.developerId }
    },

    ofEvents: (of, before) => endOf(log, of, behind(before)),

    async ofLaterEvents(of, after) {
      const end = await endOf(later, of, { after })
      return end && { key: end.eventSeq, id: withEventId(end).eventId, developerId: end.developerId }
    },

    async ofAudit(developerId, before) {
      const [end] = await audit({ owner: developerId, ...behind(before) })
      return end?.key
    },

    async ofDeliveries(endpointId, before) {
      const [end] = await sent({ owner: endpointId, ...behind(before) })
      return end?.key
    },
  }
}
