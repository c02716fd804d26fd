import { and, asc, desc, eq, gt, gte, inArray, lt, lte, sql } from 'drizzle-orm'
import { lowestId } from '../domain/model/ids.ts'
import type { Sealing } from './engine/sealing.ts'
import type { WebhookDeliveryStore } from '../domain/store/webhook-deliveries.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import {
  attemptBodyColumn,
  attemptRow,
  loadMessages,
  recomputeDueAt,
  recordAttempt,
} from './webhook-delivery-rows.ts'
import { minuteMs } from '../shared/durations.ts'

/**
 * Creates the store of webhook deliveries.
 *
 * @param onDelivery called when a delivery becomes due, before the transaction commits
 */
export function createWebhookDeliveryStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
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
    ...eventIdColumns(events),
    type: deliveries.type,
    status: deliveries.status,
    attempts: deliveries.attempts,
    lastStatusCode: deliveries.lastStatusCode,
    lastError: deliveries.lastError,
    nextAttemptAt: deliveries.nextAttemptAt,
    createdAt: deliveries.createdAt,
    deliveredAt: deliveries.deliveredAt,
  }
  const matchesDelivery = (endpointId: string, id: string) =>
    and(eq(deliveries.id, id), eq(deliveries.endpointId, endpointId))
  type ListFilter = { endpointId: string } & Parameters<WebhookDeliveryStore['list']>[1]
  const list = prepareFiltered(
    database,
    ({ endpointId, status, type, limit, before, from }: FilterPlaceholders<ListFilter>) =>
      executor
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
        .orderBy(orderByLimit(desc(deliveries.id), limit)),
  )

  return {
    async list(endpointId, query) {
      const ids = await loadEventIds(database, executor)
      return (await list({ endpointId, ...query })).map((row) => withEventId(ids, row))
    },

    async find(endpointId, id) {
      const [row] = await executor
        .select(columns)
        .from(deliveries)
        .innerJoin(events, eq(events.seq, deliveries.eventSeq))
        .where(matchesDelivery(endpointId, id))
      return row && withEventId(await loadEventIds(database, executor), row)
    },

    async attempts(id) {
      const { number, at, statusCode, error, durationMs, body } = webhookAttempts
      const rows = await executor
        .select({ number, at, statusCode, error, durationMs, body })
        .from(webhookAttempts)
        .where(eq(webhookAttempts.deliveryId, id))
        .orderBy(asc(webhookAttempts.number))
      return rows.map(({ number, ...attempt }) => ({
        ...attempt,
        body: sealing.openText(attemptBodyColumn, attemptRow(id, number), attempt.body),
      }))
    },

    async load(endpointId, id) {
      const [message] = await loadMessages(database, executor, sealing, matchesDelivery(endpointId, id))
      return message
    },

    async recordManualAttempt(endpointId, id, attempt, now) {
      const isDelivered = attempt.error === null
      await executor
        .update(endpoints)
        .set({
          lastDeliveryAt: isDelivered ? now : sql`last_delivery_at`,
          // A disabled endpoint keeps its `failingSince`.
          ...(isDelivered && {
            failingSince: sql`case status when 'enabled' then null else failing_since end`,
          }),
        })
        .where(eq(endpoints.id, endpointId))
      const [updated] = await executor
        .update(deliveries)
        .set({
          attempts: sql`${deliveries.attempts} + 1`,
          lastStatusCode: attempt.statusCode,
          lastError: attempt.error,
          ...(isDelivered && {
            status: 'delivered',
            nextAttemptAt: null,
            leaseOwner: null,
            leaseUntil: null,
            deliveredAt: sql`coalesce(${deliveries.deliveredAt}, ${now})`,
          }),
        })
        .where(matchesDelivery(endpointId, id))
        .returning({ attempts: deliveries.attempts })
      if (!updated) return false
      await recordAttempt(database, executor, sealing, id, updated.attempts, attempt)
      await recomputeDueAt(database, executor, [endpointId])
      return true
    },

    async requeueFailed(endpointId, { since, until, after, limit }, now) {
      // Locks the endpoint, so that a worker that recomputes its due time sees the requeued deliveries.
      await executor
        .update(endpoints)
        .set({ dueAt: sql`due_at` })
        .where(eq(endpoints.id, endpointId))
      const failedDeliveries = executor
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(
          and(
            eq(deliveries.endpointId, endpointId),
            eq(deliveries.status, 'failed'),
            // Skips older rows by id: an id is generated at almost the same time as `createdAt`. With an upper bound as
            // well, SQLite would choose an index that also scans delivered rows.
            gt(deliveries.id, after ?? lowestId('dlv', Math.max(0, since - idSlackMs))),
            gte(deliveries.createdAt, since),
            lte(deliveries.createdAt, until),
          ),
        )
        .orderBy(asc(deliveries.id))
        .limit(limit)
      const requeued = await executor
        .update(deliveries)
        .set({ status: 'pending', failures: 0, nextAttemptAt: now })
        .where(inArray(deliveries.id, failedDeliveries))
        .returning({ id: deliveries.id })
      await recomputeDueAt(database, executor, [endpointId])
      if (requeued.length > 0) onDelivery()
      return requeued.map(({ id }) => id).toSorted()
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, deliveries, deliveries.id, deliveries.createdAt, until, batchSize),
  }
}

/** Upper bound for the difference between the time in an id and the row's `createdAt`. */
const idSlackMs = minuteMs
