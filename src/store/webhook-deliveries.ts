import { and, asc, desc, eq, gt, gte, inArray, lt, lte, sql } from 'drizzle-orm'
import { lowestId } from '../domain/model/ids.ts'
import type { WebhookDeliveryStore } from '../domain/webhooks/delivery.ts'
import { atMost } from './engine/typed-placeholders.ts'
import type { Builders, Database } from './engine/database.ts'
import { eventColumns, withEventId } from './engine/event-id-columns.ts'
import { deleteOldestInOrder } from './engine/delete-oldest.ts'
import { prepareFiltered, type Given } from './engine/prepare-filtered.ts'
import { recordAttempt } from './webhook-attempts.ts'
import { settleDue } from './webhook-due.ts'
import { loadMessages } from './webhook-messages.ts'

/** @param onDelivery told that a delivery waits, before the transaction ends */
export function createWebhookDeliveryStore(
  database: Database,
  on: Builders,
  onDelivery: () => void,
): WebhookDeliveryStore {
  const {
    webhookDeliveries: deliveries,
    webhookAttempts,
    webhookEndpoints: endpoints,
    events,
  } = database.tables

  const columns = {
    id: deliveries.id,
    ...eventColumns(events),
    type: deliveries.type,
    status: deliveries.status,
    attempts: deliveries.attempts,
    lastStatusCode: deliveries.lastStatusCode,
    lastError: deliveries.lastError,
    nextAttemptAt: deliveries.nextAttemptAt,
    createdAt: deliveries.createdAt,
    deliveredAt: deliveries.deliveredAt,
  }
  const is = (endpointId: string, id: string) =>
    and(eq(deliveries.id, id), eq(deliveries.endpointId, endpointId))
  type ListFilter = { endpointId: string } & Parameters<WebhookDeliveryStore['list']>[1]
  const list = prepareFiltered(
    database,
    ({ endpointId, status, type, limit, before, from }: Given<ListFilter>) =>
      on
        .select(columns)
        .from(deliveries)
        .innerJoin(events, eq(events.seq, deliveries.eventSeq))
        .where(
          and(
            eq(deliveries.endpointId, endpointId),
            status && eq(deliveries.status, status),
            type && eq(deliveries.type, type),
            before && lt(deliveries.id, before),
            from && gte(deliveries.id, from),
          ),
        )
        .orderBy(atMost(desc(deliveries.id), limit)),
  )

  return {
    async list(endpointId, query) {
      return (await list({ endpointId, ...query })).map(withEventId)
    },

    async find(endpointId, id) {
      const [row] = await on
        .select(columns)
        .from(deliveries)
        .innerJoin(events, eq(events.seq, deliveries.eventSeq))
        .where(is(endpointId, id))
      return row && withEventId(row)
    },

    attempts(id) {
      const { at, statusCode, error, durationMs, body } = webhookAttempts
      return on
        .select({ at, statusCode, error, durationMs, body })
        .from(webhookAttempts)
        .where(eq(webhookAttempts.deliveryId, id))
        .orderBy(asc(webhookAttempts.number))
    },

    async load(endpointId, id) {
      const [message] = await loadMessages(database, on, is(endpointId, id))
      return message
    },

    async recordManual(endpointId, id, attempt, now) {
      const delivered = attempt.error === null
      await on
        .update(endpoints)
        .set({
          lastDeliveryAt: delivered ? now : sql`last_delivery_at`,
          // What is known of a disabled endpoint stays.
          ...(delivered && {
            failingSince: sql`case status when 'enabled' then null else failing_since end`,
          }),
        })
        .where(eq(endpoints.id, endpointId))
      const [written] = await on
        .update(deliveries)
        .set({
          attempts: sql`${deliveries.attempts} + 1`,
          lastStatusCode: attempt.statusCode,
          lastError: attempt.error,
          ...(delivered && {
            status: 'delivered',
            nextAttemptAt: null,
            leaseOwner: null,
            leaseUntil: null,
            deliveredAt: sql`coalesce(${deliveries.deliveredAt}, ${now})`,
          }),
        })
        .where(is(endpointId, id))
        .returning({ attempts: deliveries.attempts })
      if (!written) return false
      await recordAttempt(database, on, id, written.attempts, attempt)
      await settleDue(database, on, [endpointId])
      return true
    },

    async requeueFailed(endpointId, { since, until, after, limit }, now) {
      // Held, so that a worker that settles when the endpoint is due sees what is put back.
      await on
        .update(endpoints)
        .set({ dueAt: sql`due_at` })
        .where(eq(endpoints.id, endpointId))
      const found = on
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(
          and(
            eq(deliveries.endpointId, endpointId),
            eq(deliveries.status, 'failed'),
            // An id is made within moments of its event: this only spares the way there. A bound on the other side, too,
            // would have SQLite walk over what was delivered.
            gt(deliveries.id, after ?? lowestId('dlv', Math.max(0, since - idSlackMs))),
            gte(deliveries.createdAt, since),
            lte(deliveries.createdAt, until),
          ),
        )
        .orderBy(asc(deliveries.id))
        .limit(limit)
      const requeued = await on
        .update(deliveries)
        .set({ status: 'pending', failures: 0, nextAttemptAt: now })
        .where(inArray(deliveries.id, found))
        .returning({ id: deliveries.id })
      await settleDue(database, on, [endpointId])
      if (requeued.length > 0) onDelivery()
      return requeued.map(({ id }) => id).toSorted()
    },

    deleteOldest: (until, chunk) =>
      deleteOldestInOrder(on, deliveries, deliveries.id, deliveries.createdAt, until, chunk),
  }
}

const idSlackMs = 60_000
