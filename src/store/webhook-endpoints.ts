import { and, count, desc, eq, getTableColumns, lt, lte, sql } from 'drizzle-orm'
import { subscriptions, type Subscription } from '../domain/model/event-kinds.ts'
import type { EndpointListQuery, WebhookEndpointStore } from '../domain/webhooks/endpoints.ts'
import type { SealedHeaders } from '../domain/webhooks/headers.ts'
import { atMost, boundText } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'

export function createWebhookEndpointStore(
  database: Database,
  on: Builders,
  onDelivery: () => void,
): WebhookEndpointStore {
  const { webhookEndpoints: endpoints, applications } = database.tables
  const owned = (developerId: string, id: string) =>
    and(eq(endpoints.id, id), eq(endpoints.developerId, developerId))

  // Asked for by every event. In their order: two transactions that hold several would otherwise wait for each other.
  const subscribers = database.prepare(() =>
    on
      .select({ id: endpoints.id, events: endpoints.events })
      .from(endpoints)
      .where(and(eq(endpoints.appId, boundText('appId')), sql`${endpoints.status} = 'enabled'`))
      .orderBy(endpoints.id),
  )
  const { dueAt: _dueAt, ...columns } = getTableColumns(endpoints)
  const list = prepareFiltered(database, ({ developerId, appId, limit, before }: Given<EndpointListQuery>) =>
    on
      .select(columns)
      .from(endpoints)
      .where(
        and(
          eq(endpoints.developerId, developerId),
          appId && eq(endpoints.appId, appId),
          before && lt(endpoints.id, before),
        ),
      )
      .orderBy(atMost(desc(endpoints.id), limit)),
  )

  return {
    async find(developerId, id) {
      const [row] = await on.select(columns).from(endpoints).where(owned(developerId, id))
      return row && readRow(row)
    },

    async findWithApplication(developerId, id) {
      const [row] = await on
        .select({
          ...columns,
          projectId: applications.projectId,
          environment: applications.environment,
          webhookSecret: applications.webhookSecret,
        })
        .from(endpoints)
        .innerJoin(applications, eq(applications.id, endpoints.appId))
        .where(owned(developerId, id))
      return row && readRow(row)
    },

    list: async (query) => (await list(query)).map(readRow),

    async subscribers(appId) {
      const rows = await subscribers({ appId })
      return rows.map((row) => ({ ...row, events: readEvents(row.events) }))
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
      const { events, headers } = endpoint
      await on
        .insert(endpoints)
        .values({ ...endpoint, events: writeEvents(events), headers: writeHeaders(headers) })
    },

    async update(developerId, id, { events, headers, ...changes }, now) {
      const enabled = changes.status === 'enabled'
      const [row] = await on
        .update(endpoints)
        .set({
          ...changes,
          ...(events && { events: writeEvents(events) }),
          ...(headers && { headers: writeHeaders(headers) }),
          ...(enabled && { disabledReason: null, failingSince: null, dueAt: now }),
          updatedAt: now,
        })
        .where(owned(developerId, id))
        .returning(columns)
      if (enabled) onDelivery()
      return row && readRow(row)
    },

    async lock(id) {
      await on
        .update(endpoints)
        .set({ dueAt: sql`due_at` })
        .where(eq(endpoints.id, id))
    },

    async findOwner(id) {
      const [row] = await on
        .select({ developerId: endpoints.developerId, appId: endpoints.appId })
        .from(endpoints)
        .where(eq(endpoints.id, id))
      return row
    },

    async disable(id, disabledReason, failingUntil, now) {
      const disabled = await on
        .update(endpoints)
        .set({ status: 'disabled', disabledReason, updatedAt: now })
        .where(
          and(
            eq(endpoints.id, id),
            eq(endpoints.status, 'enabled'),
            failingUntil === undefined ? undefined : lte(endpoints.failingSince, failingUntil),
          ),
        )
        .returning({ id: endpoints.id })
      return disabled.length === 1
    },

    async delete(developerId, id) {
      const deleted = await on.delete(endpoints).where(owned(developerId, id)).returning({ id: endpoints.id })
      return deleted.length === 1
    },
  }
}

// A list of words without spaces is text with spaces: cheaper to read than JSON, which every event would pay for.
const writeEvents = (events: Subscription[]) => events.join(' ')

const readEvents = (events: string): Subscription[] => events.split(' ').filter(isSubscription)

const readRow = <T extends { events: string; headers: string | null }>(row: T) => ({
  ...row,
  events: readEvents(row.events),
  headers: readHeaders(row.headers),
})

const writeHeaders = (headers: SealedHeaders) =>
  Object.keys(headers).length === 0 ? null : JSON.stringify(headers)

/** What writeHeaders has written. */
export function readHeaders(stored: string | null): SealedHeaders {
  const headers: SealedHeaders = stored === null ? {} : JSON.parse(stored)
  return headers
}

const isSubscription = (word: string): word is Subscription => known.has(word)

const known: ReadonlySet<string> = new Set(subscriptions)
