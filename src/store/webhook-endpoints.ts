import { and, count, desc, eq, getTableColumns, lt, sql } from 'drizzle-orm'
import { subscriptions, type Subscription } from '../domain/event-kinds.ts'
import type { WebhookEndpointStore } from '../domain/webhook-endpoints.ts'
import type { Builders, Database } from './database.ts'

export function createWebhookEndpointStore(database: Database, on: Builders): WebhookEndpointStore {
  const { webhookEndpoints: endpoints, applications } = database.tables
  const owned = (developerId: string, id: string) =>
    and(eq(endpoints.id, id), eq(endpoints.developerId, developerId))

  // Asked for by every event.
  const subscribers = database.prepare(() =>
    on
      .select({ id: endpoints.id, events: endpoints.events })
      .from(endpoints)
      .where(and(eq(endpoints.appId, sql.placeholder('appId')), eq(endpoints.status, 'enabled'))),
  )

  return {
    async find(developerId, id) {
      const [row] = await on.select().from(endpoints).where(owned(developerId, id))
      return row && readRow(row)
    },

    async findWithApplication(developerId, id) {
      const [row] = await on
        .select({
          ...getTableColumns(endpoints),
          projectId: applications.projectId,
          environment: applications.environment,
          webhookSecret: applications.webhookSecret,
        })
        .from(endpoints)
        .innerJoin(applications, eq(applications.id, endpoints.appId))
        .where(owned(developerId, id))
      return row && readRow(row)
    },

    async list({ developerId, appId, limit, before }) {
      const rows = await on
        .select()
        .from(endpoints)
        .where(
          and(
            eq(endpoints.developerId, developerId),
            appId === undefined ? undefined : eq(endpoints.appId, appId),
            before === undefined ? undefined : lt(endpoints.id, before),
          ),
        )
        .orderBy(desc(endpoints.id))
        .limit(limit)
      return rows.map(readRow)
    },

    async subscribers(appId) {
      const rows = await subscribers({ appId })
      return rows.map(readRow)
    },

    async lockApplication(developerId, appId) {
      await database.lock(on, applications, applications.id, appId)
      const found = await on
        .select({ id: applications.id })
        .from(applications)
        .where(and(eq(applications.id, appId), eq(applications.developerId, developerId)))
      return found.length === 1
    },

    async count(appId) {
      const [row] = await on.select({ count: count() }).from(endpoints).where(eq(endpoints.appId, appId))
      return row?.count ?? 0
    },

    async insert(endpoint) {
      await on.insert(endpoints).values({ ...endpoint, events: writeEvents(endpoint.events) })
    },

    async update(developerId, id, { events, ...changes }, now) {
      const [row] = await on
        .update(endpoints)
        .set({
          ...changes,
          ...(events && { events: writeEvents(events) }),
          ...(changes.status === 'enabled' && { disabledReason: null, failingSince: null }),
          updatedAt: now,
        })
        .where(owned(developerId, id))
        .returning()
      return row && readRow(row)
    },

    async delete(developerId, id) {
      const deleted = await on.delete(endpoints).where(owned(developerId, id)).returning({ id: endpoints.id })
      return deleted.length === 1
    },
  }
}

// A list of words without spaces is text with spaces: cheaper to read than JSON, which every event would pay for.
const writeEvents = (events: Subscription[]) => events.join(' ')

const readRow = <T extends { events: string }>(row: T): Omit<T, 'events'> & { events: Subscription[] } => ({
  ...row,
  events: row.events.split(' ').filter(isSubscription),
})

const isSubscription = (word: string): word is Subscription => known.has(word)

const known: ReadonlySet<string> = new Set(subscriptions)
