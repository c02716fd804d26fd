import { and, count, eq, inArray, isNotNull, min, sql, type SQL } from 'drizzle-orm'
import type {
  ClaimedDelivery,
  StoredWebhookMessage,
  WebhookOutboxStore,
} from '../domain/store/webhook-outbox.ts'
import { onTable } from './engine/on-table.ts'
import { type FilterPlaceholders, prepareFiltered } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { createDeliveryInsertion, type OutboxNeeds } from './webhook-insertion.ts'
import type { ClaimRequest, PermitHolder } from '../domain/model/fair-permits.ts'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import { changeDeliveryLists } from './list-changes.ts'
import { prepareRemembered } from './remember.ts'
import {
  earliestDue,
  leasedDeliveries,
  prepareRecomputeDue,
  openMessages,
  openTarget,
  prepareRecordAttempt,
  selectMessages,
} from './webhook-delivery-rows.ts'

/**
 * Creates the outbox. Every change to an endpoint's pending deliveries first locks the endpoint's row, so that its due
 * time is computed from the current deliveries. Without the lock, a race on PostgreSQL could release a due delivery that
 * no worker looks for.
 */
export function createWebhookOutboxStore(connection: Connection, needs: OutboxNeeds): WebhookOutboxStore {
  const { database, executor, sealing } = connection
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints, applications } = database.tables
  const p = sql.placeholder

  const findDue = prepareFiltered(
    database,
    (due: FilterPlaceholders<{ now: number; limit: number; excluded: readonly string[] }>) =>
      executor
        .select({
          id: sql<string>`due.id`,
          developerId: sql<string>`due.developer_id`,
          isTest: sql`due.is_test`.mapWith(Boolean),
        })
        .from(sql`${dueEndpoints(due, database.skipLocked('endpoint'))} as due`),
  )
  type Endpoints = { endpointIds: readonly string[] }
  type Lease = Omit<ClaimRequest, 'permits'>
  const clearExpiredLeases = prepareFiltered(
    database,
    ({ endpointIds, now }: FilterPlaceholders<Endpoints & { now: number }>) =>
      executor
        .update(deliveries)
        .set(noLease)
        .where(
          sql`${deliveries.endpointId} in ${endpointIds} and ${deliveries.leaseOwner} is not null and ${deliveries.leaseUntil} <= ${now}`,
        ),
  )
  const leaseDue = prepareFiltered(
    database,
    ({ owner, leaseUntil, ...due }: FilterPlaceholders<Endpoints & Lease>) =>
      executor
        .update(deliveries)
        .set({ leaseOwner: owner, leaseUntil, claims: sql`${deliveries.claims} + 1` })
        .where(sql`${deliveries.id} in ${dueDeliveries(due)}`)
        .returning({
          id: deliveries.id,
          endpointId: deliveries.endpointId,
          claim: deliveries.claims,
          failures: deliveries.failures,
        }),
  )
  const recomputeDue = prepareRecomputeDue(connection)
  const findNextDue = database.prepare(() =>
    executor
      .select({ at: min(endpoints.dueAt) })
      .from(endpoints)
      .where(sql`status = 'enabled' and due_at is not null`),
  )
  const loadStored = prepareFiltered(database, ({ ids }: FilterPlaceholders<{ ids: readonly string[] }>) =>
    selectMessages(connection, and(sql`${deliveries.id} in ${ids}`, sql`${endpoints.status} = 'enabled'`)),
  )
  const selectTarget = () =>
    executor
      .select({
        endpointId: endpoints.id,
        appId: endpoints.appId,
        url: endpoints.url,
        secret: applications.webhookSecret,
        headers: endpoints.headers,
      })
      .from(endpoints)
      .innerJoin(applications, eq(applications.id, endpoints.appId))
      .where(sql`${endpoints.id} = ${p('id')} and ${endpoints.status} = 'enabled'`)
  const findTarget =
    database.sqlite &&
    prepareRemembered(connection, database.sqlite, selectTarget, ([row]) => row && openTarget(sealing, row))

  /** Matches the delivery while the claim's lease is the latest one (fencing). */
  const isLeasedByClaim = and(
    eq(deliveries.id, p('id')),
    sql`${deliveries.status} = 'pending'`,
    eq(deliveries.leaseOwner, p('owner')),
    eq(deliveries.claims, p('claim')),
  )
  const recordResult = database.prepare(() =>
    executor
      .update(deliveries)
      .set({
        ...noLease,
        status: sql`${p('status')}`,
        attempts: sql`${deliveries.attempts} + 1`,
        failures: sql`${p('failures')}`,
        lastStatusCode: sql`${p('statusCode')}`,
        lastError: sql`${p('error')}`,
        nextAttemptAt: sql`${p('nextAttemptAt')}`,
        deliveredAt: sql`${p('deliveredAt')}`,
      })
      .where(isLeasedByClaim)
      .returning({ attempts: deliveries.attempts, type: deliveries.type }),
  )
  const recordAttempt = prepareRecordAttempt(connection)
  const updateEndpointState = database.prepare(() =>
    executor
      .update(endpoints)
      .set({
        failingSince: sql`case ${p('outcome')} when 'failed' then coalesce(failing_since, ${p('now')}) when 'delivered' then null else failing_since end`,
        lastDeliveryAt: sql`case ${p('outcome')} when 'delivered' then ${p('now')} else last_delivery_at end`,
        dueAt: earliestDue,
      })
      .where(eq(endpoints.id, p('endpointId')))
      .returning({ failingSince: endpoints.failingSince }),
  )
  const clearLease = database.prepare(() => executor.update(deliveries).set(noLease).where(isLeasedByClaim))
  const lockEndpoint = (id: string) => database.lock(executor, endpoints, endpoints.id, id)

  return {
    ...createDeliveryInsertion(connection, needs),

    async claim({ permits, ...lease }) {
      const claimed: ClaimedDelivery[] = []
      const { now } = lease
      // Each round leases one delivery of an endpoint. The last finds no more that may have a permit.
      while (permits.free() > 0) {
        const excluded = ['', ...permits.excluded().map(useKey)]
        const turns = new Map<string, PermitHolder & { returnPermit(): void }>()
        for (const { id, ...use } of await findDue({ now, limit: permits.free(), excluded })) {
          const returnPermit = permits.take(use)
          if (returnPermit) turns.set(id, { ...use, returnPermit })
        }
        const endpointIds = [...turns.keys()]
        if (endpointIds.length === 0) break
        await clearExpiredLeases({ endpointIds, now })
        for (const { endpointId, ...row } of await leaseDue({ endpointIds, ...lease })) {
          const turn = turns.get(endpointId)
          if (!turn) continue
          turns.delete(endpointId)
          const { developerId, isTest } = turn
          claimed.push({ ...row, endpointId, developerId, isTest })
        }
        await recomputeDue({ endpointIds })
        // They looked due, and had nothing to lease.
        for (const { returnPermit } of turns.values()) returnPermit()
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await findNextDue()
      return row?.at ?? undefined
    },

    async backlog(limit) {
      // Has the same text as the condition of the partial index.
      const isWaiting = sql`${deliveries.status} = 'pending' and ${deliveries.leaseOwner} is null`
      const waiting = executor
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(isWaiting)
        .limit(limit)
        .as('waiting')
      const [row] = await executor.select({ pending: count(), oldest: min(waiting.id) }).from(waiting)
      if (!row?.oldest) return { pending: 0, oldestAt: null }
      const [oldest] = await executor
        .select({ createdAt: deliveries.createdAt })
        .from(deliveries)
        .where(eq(deliveries.id, row.oldest))
      return { pending: row.pending, oldestAt: oldest?.createdAt ?? null }
    },

    async load(list) {
      const messages: StoredWebhookMessage[] = []
      const ids: string[] = []
      for (const { id, endpointId, payload } of list) {
        const target = payload && findTarget?.(endpointId)
        if (target) messages.push({ ...target, ...payload, deliveryId: id })
        else if (!payload || !findTarget) ids.push(id)
      }
      if (ids.length === 0) return messages
      return [...messages, ...(await openMessages(connection, await loadStored({ ids })))]
    },

    async release({ id, endpointId, owner, claim }) {
      await lockEndpoint(endpointId)
      await clearLease({ id, owner, claim })
      await recomputeDue({ endpointIds: [endpointId] })
    },

    async finish({ attempt, retryAt, now, id, endpointId, owner, claim, failures }) {
      await lockEndpoint(endpointId)
      const { error, statusCode } = attempt
      const isDelivered = error === null
      const status = isDelivered ? 'delivered' : retryAt === null ? 'failed' : 'pending'
      const [updated] = await recordResult({
        id,
        owner,
        claim,
        status,
        failures: failures + (isDelivered ? 0 : 1),
        statusCode,
        error,
        nextAttemptAt: isDelivered ? null : retryAt,
        deliveredAt: isDelivered ? now : null,
      })
      if (updated && status !== 'pending')
        changeDeliveryLists(
          database,
          { id, endpointId, type: updated.type },
          { from: ['pending'], to: status },
        )
      if (updated) await recordAttempt(id, updated.attempts, attempt)
      const outcome = updated ? (isDelivered ? 'delivered' : 'failed') : 'lost'
      const [endpoint] = await updateEndpointState({ endpointId, now, outcome })
      return updated ? (endpoint?.failingSince ?? null) : null
    },

    async releaseAll() {
      const isLeased = isNotNull(deliveries.leaseOwner)
      const leasing = executor.select({ id: deliveries.endpointId }).from(deliveries).where(isLeased)
      await onTable(executor, endpoints).update({ dueAt: 0 }, inArray(endpoints.id, leasing))
      await onTable(executor, deliveries).update(noLease, isLeased)
    },
  }
}

const noLease = { leaseOwner: null, leaseUntil: null }

/**
 * Selects and locks endpoints with a due delivery, in the order of `WebhookOutboxStore.claim`. The due time is stored with
 * the endpoint, so endpoints without due deliveries cost nothing.
 *
 * @param excluded developers with the environment whose deliveries get no permit, as `useKey` writes them
 */
const dueEndpoints = (
  { now, limit, excluded }: { now: SQL; limit: SQL; excluded: SQL[] },
  locking: SQL,
) => sql`(
  select endpoint.id, ranked.developer_id, ranked.is_test from webhook_endpoints endpoint inner join (
    select due.*, row_number() over (partition by developer_id, is_test, is_failing order by due_at) as turn from (
      select e.id, e.developer_id, e.due_at,
        case when e.failing_since is null then 0 else 1 end as is_failing,
        case when a.environment = 'test' then 1 else 0 end as is_test
      from webhook_endpoints e inner join applications a on a.id = e.app_id
      where e.status = 'enabled' and e.due_at <= ${now} and e.developer_id || ' ' || a.environment not in ${excluded}
    ) as due
  ) as ranked on ranked.id = endpoint.id
  where endpoint.status = 'enabled' and endpoint.due_at <= ${now}
  order by is_test, is_failing, turn, ranked.due_at limit ${limit} ${locking}
)`

/** Writes which deliveries get no permit: see `dueEndpoints`. */
const useKey = ({ developerId, isTest }: PermitHolder) => `${developerId} ${isTest ? 'test' : 'live'}`

/** Selects the oldest due delivery of each endpoint that has less than the maximum of leased ones. */
const dueDeliveries = ({ endpointIds, now }: { endpointIds: SQL[]; now: SQL }): SQL => sql`(
  select (
    select d.id from webhook_deliveries d
    where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
      and d.next_attempt_at <= ${now}
    order by d.next_attempt_at, d.id limit 1
  ) as id from webhook_endpoints
  where webhook_endpoints.id in ${endpointIds}
    and (select count(*) from ${leasedDeliveries}) < ${sql.raw(String(sendsPerEndpointMax))}
)`
