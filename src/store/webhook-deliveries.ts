import { and, asc, desc, eq, gt, gte, inArray, lt, lte, sql, type SQL } from 'drizzle-orm'
import { lowestId } from '../domain/model/ids.ts'
import { webhookDeliveryStatuses, type SentRequest } from '../domain/model/webhook-delivery.ts'
import { eventKinds } from '../shared/event-kinds.ts'
import type { WebhookDeliveryStore } from '../domain/store/webhook-deliveries.ts'
import { type FilterPlaceholders, inJson, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'
import { onTable } from './engine/on-table.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { inOrder, loadListed } from './list-reads.ts'
import { deliveryList } from './sqlite/list-numbers.ts'
import { changeDeliveryLists } from './list-changes.ts'
import {
  attemptBodyColumn,
  attemptRow,
  openMessages,
  prepareRecordAttempt,
  prepareRecomputeDue,
  selectMessages,
} from './webhook-delivery-rows.ts'
import { pick } from '../shared/fields.ts'
import { minuteMs } from '../shared/durations.ts'

/**
 * Creates the store of webhook deliveries.
 *
 * @param onDelivery called when a delivery becomes due, before the transaction commits
 */
export function createWebhookDeliveryStore(
  connection: Connection,
  onDelivery: () => void,
): WebhookDeliveryStore {
  const { database, executor, sealing } = connection
  const {
    webhookDeliveries: deliveries,
    webhookAttempts,
    webhookEndpoints: endpoints,
    events,
  } = database.tables

  // prettier-ignore
  const columns = {
    ...eventIdColumns(events),
    ...pick(deliveries, [
      'id', 'type', 'status', 'attempts', 'lastStatusCode', 'lastError', 'nextAttemptAt', 'createdAt', 'deliveredAt',
    ]),
  }
  const rows = onTable(executor, deliveries)
  const recordAttempt = prepareRecordAttempt(connection)
  const matchesDelivery = (endpointId: string, id: string) =>
    and(eq(deliveries.id, id), eq(deliveries.endpointId, endpointId))
  type Query = Parameters<WebhookDeliveryStore['list']>[1]
  const selectListed = (condition: SQL | undefined) =>
    executor
      .select(columns)
      .from(deliveries)
      .innerJoin(events, eq(events.seq, deliveries.eventSeq))
      .where(condition)
  // PostgreSQL, and without a filter SQLite too
  const listPage = prepareFiltered(
    database,
    ({ endpointId, status, type, limit, before }: FilterPlaceholders<{ endpointId: string } & Query>) =>
      selectListed(
        and(
          eq(deliveries.endpointId, endpointId),
          status && eq(deliveries.status, status),
          type && eq(deliveries.type, type),
          before && lt(deliveries.id, before),
        ),
      ).orderBy(orderByLimit(desc(deliveries.id), limit)),
  )
  // SQLite
  const listIds = prepareFiltered(
    database,
    ({ ids, status }: FilterPlaceholders<{ ids: string; status: Query['status'] }>) =>
      selectListed(and(inJson(deliveries.id, ids), status && eq(deliveries.status, status))),
  )

  const recomputeDue = prepareRecomputeDue(connection)
  /** Locks an endpoint, so that a worker that recomputes its due time sees the requeued deliveries. */
  const lockEndpoint = (id: string) => database.lock(executor, endpoints, endpoints.id, id)

  function listRows(endpointId: string, query: Query) {
    const lists = database.sqlite?.lists
    const { status, type, limit, before } = query
    if (!lists || (status === undefined && type === undefined)) return listPage({ endpointId, ...query })
    const statuses = status === undefined ? webhookDeliveryStatuses : [status]
    const types = type === undefined ? deliveryTypes : [type]
    const numbers = statuses.flatMap((one) => types.map((other) => deliveryList(one, other)))
    return loadListed(
      lists,
      { owners: [endpointId], lists: numbers },
      { before },
      limit,
      async (ids: string[]) => {
        const rows = await listIds({ ids: JSON.stringify(ids), status })
        return inOrder(ids, rows, ({ id }) => id)
      },
    )
  }

  return {
    async list(endpointId, query) {
      const ids = await loadEventIds(connection)
      return (await listRows(endpointId, query)).map((row) => withEventId(ids, row))
    },

    async find(endpointId, id) {
      const [row] = await selectListed(matchesDelivery(endpointId, id))
      return row && withEventId(await loadEventIds(connection), row)
    },

    async attempts(id) {
      const { deliveryId, number } = webhookAttempts
      const rows = await onTable(executor, webhookAttempts).list(eq(deliveryId, id), asc(number))
      return rows.map(({ deliveryId: _deliveryId, number, ...attempt }) => ({
        ...attempt,
        body: sealing.openText(attemptBodyColumn, attemptRow(id, number), attempt.body),
        // Written by `prepareRecordAttempt`.
        request: attempt.request === null ? null : (JSON.parse(attempt.request) as SentRequest),
      }))
    },

    async load(endpointId, id) {
      const rows = await selectMessages(connection, matchesDelivery(endpointId, id))
      const [message] = await openMessages(connection, rows)
      return message
    },

    async recordManualAttempt(endpointId, id, attempt, now) {
      const isDelivered = attempt.error === null
      // Also after a failure, as it locks the endpoint.
      await onTable(executor, endpoints).update(
        {
          lastDeliveryAt: isDelivered ? now : sql`last_delivery_at`,
          // A disabled endpoint keeps its `failingSince`.
          ...(isDelivered && {
            failingSince: sql`case status when 'enabled' then null else failing_since end`,
          }),
        },
        eq(endpoints.id, endpointId),
      )
      const [updated] = await rows.change(
        {
          attempts: sql`${deliveries.attempts} + 1`,
          lastStatusCode: attempt.statusCode,
          lastError: attempt.error,
          ...(isDelivered && {
            status: 'delivered' as const,
            nextAttemptAt: null,
            leaseOwner: null,
            leaseUntil: null,
            deliveredAt: sql`coalesce(${deliveries.deliveredAt}, ${now})`,
          }),
        },
        matchesDelivery(endpointId, id),
      )
      if (!updated) return false
      if (isDelivered) {
        const from = ['pending', 'failed', 'skipped'] as const
        changeDeliveryLists(database, { id, endpointId, type: updated.type }, { from, to: 'delivered' })
      }
      await recordAttempt(id, updated.attempts, attempt)
      await recomputeDue({ endpointIds: [endpointId] })
      return true
    },

    async requeueEnded(endpointId, { since, until, after, limit }, now) {
      await lockEndpoint(endpointId)
      const endedDeliveries = executor
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(
          and(
            eq(deliveries.endpointId, endpointId),
            // The text of the partial index, which SQLite uses only if it sees the same.
            sql`(${deliveries.status} = 'failed' or ${deliveries.status} = 'skipped')`,
            // Skips older rows by id: an id is generated at almost the same time as `createdAt`.
            gt(deliveries.id, after ?? lowestId('dlv', Math.max(0, since - idSlackMs))),
            gte(deliveries.createdAt, since),
            lte(deliveries.createdAt, until),
          ),
        )
        .orderBy(asc(deliveries.id))
        .limit(limit)
      const requeued = await rows.change(
        { status: 'pending', failures: 0, nextAttemptAt: now },
        inArray(deliveries.id, endedDeliveries),
      )
      const change = { from: ['failed', 'skipped'], to: 'pending' } as const
      for (const { id, type } of requeued) changeDeliveryLists(database, { id, endpointId, type }, change)
      await recomputeDue({ endpointIds: [endpointId] })
      if (requeued.length > 0) onDelivery()
      return requeued.map(({ id }) => id).toSorted()
    },

    async hurryRetries(endpointId, { since, until, after, limit }, now) {
      await lockEndpoint(endpointId)
      // Those that are due at this time are sent anyway: every id is below `~`.
      const [afterTime, afterId] = after ?? [now, '~']
      const waiting = await executor
        .select({ id: deliveries.id, nextAttemptAt: deliveries.nextAttemptAt })
        .from(deliveries)
        .where(
          and(
            eq(deliveries.endpointId, endpointId),
            // The text of the partial index.
            sql`${deliveries.status} = 'pending' and ${deliveries.leaseOwner} is null`,
            sql`(${deliveries.nextAttemptAt}, ${deliveries.id}) > (${afterTime}, ${afterId})`,
            gte(deliveries.createdAt, since),
            lte(deliveries.createdAt, until),
          ),
        )
        .orderBy(asc(deliveries.nextAttemptAt), asc(deliveries.id))
        .limit(limit)
      const ids = waiting.map(({ id }) => id)
      await rows.update({ failures: 0, nextAttemptAt: now }, inArray(deliveries.id, ids))
      await recomputeDue({ endpointIds: [endpointId] })
      const last = waiting.at(-1)
      if (last) onDelivery()
      return { count: ids.length, last: last && [last.nextAttemptAt ?? now, last.id] }
    },

    async deleteFirst(endpointId, { after = '', limit }) {
      await lockEndpoint(endpointId)
      const first = executor
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(and(eq(deliveries.endpointId, endpointId), gt(deliveries.id, after)))
        .orderBy(asc(deliveries.id))
        .limit(limit)
      const deleted = await rows.take(inArray(deliveries.id, first))
      for (const { id, type, status } of deleted)
        changeDeliveryLists(database, { id, endpointId, type }, { from: [status], to: undefined })
      await recomputeDue({ endpointIds: [endpointId] })
      const ids = deleted.map(({ id }) => id).toSorted()
      // The last batch is one that is not full: an empty one may not come for as long as events arrive.
      return ids.length < limit ? undefined : ids.at(-1)
    },

    async deleteOldest(until, batchSize) {
      if (await database.postgres?.partitions.dropOldest(executor, 'webhook_deliveries', until)) return true
      const { id, endpointId, type, status, createdAt: at } = deliveries
      const returned = { id, endpointId, type, status }
      const deleted = await deleteOldestByKey(executor, { key: id, at }, { until, batchSize }, returned)
      for (const row of deleted) changeDeliveryLists(database, row, { from: [row.status], to: undefined })
      return deleted.length > 0
    },
  }
}

/** Types of deliveries; that of one whose event is lost is empty. */
const deliveryTypes = [...eventKinds, '']

/** Upper bound for the difference between the time in an id and the row's `createdAt`. */
const idSlackMs = minuteMs
