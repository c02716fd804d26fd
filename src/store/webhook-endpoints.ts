import { and, desc, eq, getTableColumns, isNotNull, lt, lte } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { subscriptions, type Subscription } from '../shared/event-kinds.ts'
import type { EndpointListQuery, WebhookEndpointStore } from '../domain/store/webhook-endpoints.ts'
import { onTable } from './engine/on-table.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered, textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { openWebhookSecret } from './applications.ts'
import { openHeaders, sealHeaders } from './webhook-headers.ts'

export function createWebhookEndpointStore(
  connection: Connection,
  onDelivery: () => void,
): WebhookEndpointStore {
  const { database, executor, sealing } = connection
  const { webhookEndpoints: endpoints, applications } = database.tables
  const rows = onTable(executor, endpoints)
  const configurationChanged = () => database.sqlite?.configuration.increment()
  const byOwnerAndId = (developerId: string, id: string) =>
    and(eq(endpoints.id, id), eq(endpoints.developerId, developerId))

  const parseRow = <T extends { id: string; events: string; headers: string | null }>(row: T) => ({
    ...row,
    events: parseEvents(row.events),
    headers: openHeaders(sealing, row.id, row.headers) ?? {},
  })

  const subscribers = database.prepare(() => selectSubscribers(connection, endpoints.appId))
  const { dueAt: _dueAt, ...columns } = getTableColumns(endpoints)
  const list = prepareFiltered(
    database,
    ({ developerId, appId, limit, before }: FilterPlaceholders<EndpointListQuery>) =>
      executor
        .select(columns)
        .from(endpoints)
        .where(
          and(
            eq(endpoints.developerId, developerId),
            appId && eq(endpoints.appId, appId),
            before && lt(endpoints.id, before),
          ),
        )
        .orderBy(orderByLimit(desc(endpoints.id), limit)),
  )

  return {
    async find(developerId, id) {
      const [row] = await executor.select(columns).from(endpoints).where(byOwnerAndId(developerId, id))
      return row && parseRow(row)
    },

    async findWithApplication(developerId, id) {
      const [row] = await executor
        .select({
          ...columns,
          projectId: applications.projectId,
          environment: applications.environment,
          webhookSecret: applications.webhookSecret,
        })
        .from(endpoints)
        .innerJoin(applications, eq(applications.id, endpoints.appId))
        .where(byOwnerAndId(developerId, id))
      return (
        row && {
          ...row,
          events: parseEvents(row.events),
          headers: openHeaders(sealing, row.id, row.headers),
          webhookSecret: openWebhookSecret(sealing, row.appId, row.webhookSecret),
        }
      )
    },

    list: async (query) => (await list(query)).map(parseRow),

    subscribers: async (appId) => (await subscribers({ id: appId })).map(parseSubscriber),

    async lockApplication(developerId, appId) {
      await database.lock(executor, applications, applications.id, appId)
      const isOwn = and(eq(applications.id, appId), eq(applications.developerId, developerId))
      return (await onTable(executor, applications).find(isOwn)) !== undefined
    },

    count: (appId) => rows.count(eq(endpoints.appId, appId)),

    async insert(endpoint) {
      const { id, events, headers } = endpoint
      await rows.insert({
        ...endpoint,
        events: serializeEvents(events),
        headers: sealHeaders(sealing, id, headers),
      })
      configurationChanged()
    },

    async update(developerId, id, { events, headers, ...changes }, now) {
      const isEnabling = changes.status === 'enabled'
      const [row] = await executor
        .update(endpoints)
        .set({
          ...changes,
          ...(events && { events: serializeEvents(events) }),
          ...(headers && { headers: sealHeaders(sealing, id, headers) }),
          ...(changes.url !== undefined && { failingSince: null }),
          ...(isEnabling && { disabledReason: null, failingSince: null, dueAt: now }),
          updatedAt: now,
        })
        .where(byOwnerAndId(developerId, id))
        .returning(columns)
      configurationChanged()
      if (isEnabling) onDelivery()
      return row && parseRow(row)
    },

    async lock(id) {
      await database.lock(executor, endpoints, endpoints.id, id)
    },

    async listDisabled() {
      const isDisabled = and(eq(endpoints.status, 'disabled'), isNotNull(endpoints.disabledReason))
      const found = await rows.list(isDisabled, endpoints.id)
      return found.flatMap(({ id, disabledReason: reason }) => (reason === null ? [] : [{ id, reason }]))
    },

    async disable(id, disabledReason, { url, failingSinceBefore }, now) {
      const [owner] = await rows.change(
        { status: 'disabled', disabledReason, updatedAt: now },
        and(
          eq(endpoints.id, id),
          eq(endpoints.url, url),
          eq(endpoints.status, 'enabled'),
          failingSinceBefore === undefined ? undefined : lte(endpoints.failingSince, failingSinceBefore),
        ),
      )
      configurationChanged()
      return owner
    },

    async delete(developerId, id) {
      const deleted = await rows.take(byOwnerAndId(developerId, id))
      configurationChanged()
      return deleted.length === 1
    },
  }
}

/** Selects the endpoints of an owner, in the order of their ids, so that transactions lock them in the same order (no deadlock). */
export function selectSubscribers({ database, executor }: Connection, owner: SQLiteColumn) {
  const { webhookEndpoints: endpoints } = database.tables
  return executor
    .select({ id: endpoints.id, events: endpoints.events })
    .from(endpoints)
    .where(eq(owner, textParam('id')))
    .orderBy(endpoints.id)
}

/** Parses an endpoint for those who write events. */
export const parseSubscriber = ({ id, events }: { id: string; events: string }) => ({
  id,
  events: parseEvents(events),
})

// Stored as words separated by spaces, which is cheaper to parse than JSON; every event reads it.
const serializeEvents = (events: Subscription[]) => events.join(' ')

const parseEvents = (events: string): Subscription[] => events.split(' ').filter(isSubscription)

const isSubscription = (word: string): word is Subscription => knownSubscriptions.has(word)

const knownSubscriptions: ReadonlySet<string> = new Set(subscriptions)
