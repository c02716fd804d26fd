import { and, asc, desc, eq, gt, lt, sql } from 'drizzle-orm'
import { windowRows, type WindowStore } from '../domain/windows.ts'
import { atMost } from './bound.ts'
import type { Builders, Database } from './database.ts'
import { eventColumns, withEventId } from './event-id-columns.ts'
import { prepareFiltered, type Given } from './prepare-filtered.ts'

type Owner = string | number
type ById = { owner: Owner; before?: string }
type BySeq = { owner: Owner; before?: number }

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
    prepareFiltered(database, ({ owner, after }: Given<{ owner: Owner; after: number }>) =>
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

  return {
    async ofRequests({ developerId, appId }, before) {
      const [end] =
        appId === undefined
          ? await requests.developer({ owner: database.shortId(developerId), ...behind(before) })
          : await requests.app({ owner: database.shortId(appId), ...behind(before) })
      const [owner] = end ? await ownerOf({ id: end.key }) : []
      return end && owner && { key: end.key, developerId: owner.developerId }
    },

    async ofEvents({ developerId, appId }, before) {
      const [end] =
        appId === undefined
          ? await log.developer({ owner: database.shortId(developerId), ...behind(before) })
          : await log.app({ owner: database.shortId(appId), ...behind(before) })
      return end
    },

    async ofLaterEvents({ developerId, appId }, after) {
      const [end] =
        appId === undefined
          ? await later.developer({ owner: database.shortId(developerId), after })
          : await later.app({ owner: database.shortId(appId), after })
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
