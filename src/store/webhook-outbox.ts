import { and, count, eq, inArray, isNotNull, lte, min, sql, type SQL } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import type {
  ClaimedDelivery,
  DeliveryClaimRequest,
  WebhookOutboxStore,
} from '../domain/store/webhook-outbox.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { noteDelivery } from './list-changes.ts'
import {
  earliestDue,
  leasedDeliveries,
  loadMessages,
  recomputeDueAt,
  recordAttempt,
} from './webhook-delivery-rows.ts'

/**
 * Creates the outbox. Every change to an endpoint's pending deliveries first updates the endpoint, which locks its
 * row, so that its due time is computed from the current deliveries. Without the lock, a race on PostgreSQL could
 * leave a due delivery that no worker looks for.
 *
 * @param onDelivery called when a delivery becomes due, before the transaction commits
 */
export function createWebhookOutboxStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
  onDelivery: () => void,
): WebhookOutboxStore {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints } = database.tables
  const p = sql.placeholder

  // Runs for every event with a subscriber. Without a condition on `due_at`, which would be evaluated before a
  // concurrent transaction changes it.
  const setDue = database.prepare(() =>
    executor
      .update(endpoints)
      .set({ dueAt: sql`case when due_at <= ${p('now')} then due_at else ${p('now')} end` })
      .where(eq(endpoints.id, p('endpointId')))
      .returning({ id: endpoints.id }),
  )
  const insert = database.prepare(() =>
    executor.insert(deliveries).values({
      id: p('id'),
      endpointId: p('endpointId'),
      eventSeq: p('eventSeq'),
      type: p('type'),
      status: 'pending',
      nextAttemptAt: p('now'),
      createdAt: p('now'),
    }),
  )
  const findDue = database.prepare(() =>
    executor
      .select({ id: endpoints.id })
      .from(endpoints)
      .where(inArray(endpoints.id, dueEndpoints(database.skipLocked))),
  )
  const lockEndpoint = database.prepare(() =>
    executor
      .update(endpoints)
      .set({ dueAt: sql`due_at` })
      .where(eq(endpoints.id, p('endpointId'))),
  )
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

  /** Matches the delivery while the claim's lease is the latest one (fencing). */
  const isLeasedBy = (claim: ClaimedDelivery & { owner: string }) =>
    and(
      eq(deliveries.id, claim.id),
      eq(deliveries.status, 'pending'),
      eq(deliveries.leaseOwner, claim.owner),
      eq(deliveries.claims, claim.claim),
    )
  const noLease = { leaseOwner: null, leaseUntil: null }

  async function claimFromEndpoints(
    endpointIds: string[],
    { owner, now, leaseUntil, limit }: DeliveryClaimRequest,
  ) {
    const hasExpiredLease = and(isNotNull(deliveries.leaseOwner), lte(deliveries.leaseUntil, now))
    await executor
      .update(deliveries)
      .set(noLease)
      .where(and(inArray(deliveries.endpointId, endpointIds), hasExpiredLease))
    const claimed = await executor
      .update(deliveries)
      .set({ leaseOwner: owner, leaseUntil, claims: sql`${deliveries.claims} + 1` })
      .where(inArray(deliveries.id, dueDeliveries(endpointIds, now, limit)))
      .returning({
        id: deliveries.id,
        endpointId: deliveries.endpointId,
        claim: deliveries.claims,
        failures: deliveries.failures,
      })
    await recomputeDueAt(database, executor, endpointIds)
    return claimed
  }

  return {
    async insert(delivery) {
      const updated = await setDue({ endpointId: delivery.endpointId, now: delivery.now })
      // The endpoint was deleted concurrently, after its subscription was read.
      if (updated.length === 0) return
      await insert(delivery)
      noteDelivery(database, delivery, 'added')
      onDelivery()
    },

    async claim({ limit, ...request }) {
      const claimed: ClaimedDelivery[] = []
      while (claimed.length < limit) {
        const remaining = limit - claimed.length
        const endpointIds = (await findDue({ now: request.now, limit: remaining })).map(({ id }) => id)
        // Repeats because endpoints that looked due may have had nothing to lease, and must not use up the limit.
        if (endpointIds.length === 0) break
        claimed.push(...(await claimFromEndpoints(endpointIds, { ...request, limit: remaining })))
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await executor
        .select({ at: min(endpoints.dueAt) })
        .from(endpoints)
        .where(sql`status = 'enabled' and due_at is not null`)
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

    load: (ids) =>
      loadMessages(
        database,
        executor,
        sealing,
        and(inArray(deliveries.id, ids), eq(endpoints.status, 'enabled')),
      ),

    async release(claim) {
      await lockEndpoint({ endpointId: claim.endpointId })
      await executor.update(deliveries).set(noLease).where(isLeasedBy(claim))
      await recomputeDueAt(database, executor, [claim.endpointId])
    },

    async finish({ attempt, retryAt, now, ...claim }) {
      const { endpointId } = claim
      await lockEndpoint({ endpointId })
      const isDelivered = attempt.error === null
      const status = isDelivered ? 'delivered' : retryAt === null ? 'failed' : 'pending'
      const [updated] = await executor
        .update(deliveries)
        .set({
          ...noLease,
          status,
          attempts: sql`${deliveries.attempts} + 1`,
          failures: claim.failures + (isDelivered ? 0 : 1),
          lastStatusCode: attempt.statusCode,
          lastError: attempt.error,
          nextAttemptAt: isDelivered ? null : retryAt,
          deliveredAt: isDelivered ? now : null,
        })
        .where(isLeasedBy(claim))
        .returning({ attempts: deliveries.attempts, type: deliveries.type })
      if (updated && status !== 'pending')
        noteDelivery(database, { id: claim.id, endpointId, type: updated.type }, status)
      if (updated) await recordAttempt(database, executor, sealing, claim.id, updated.attempts, attempt)
      const outcome = updated ? (isDelivered ? 'delivered' : 'failed') : 'lost'
      const [endpoint] = await updateEndpointState({ endpointId, now, outcome })
      return updated ? (endpoint?.failingSince ?? null) : null
    },

    async releaseAll() {
      const isLeased = isNotNull(deliveries.leaseOwner)
      await executor
        .update(endpoints)
        .set({ dueAt: 0 })
        .where(
          inArray(
            endpoints.id,
            executor.select({ id: deliveries.endpointId }).from(deliveries).where(isLeased),
          ),
        )
      await executor.update(deliveries).set(noLease).where(isLeased)
    },
  }
}

/**
 * Selects and locks endpoints with a due delivery. The due time is stored with the endpoint, so endpoints without due
 * deliveries cost nothing.
 */
const dueEndpoints = (skipLocked: SQL) => sql`(
  select id from webhook_endpoints where status = 'enabled' and due_at <= ${sql.placeholder('now')}
  order by case when failing_since is null then 0 else 1 end, due_at limit ${sql.placeholder('limit')} ${skipLocked}
)`

/** Selects the one or two oldest due deliveries of each endpoint, up to the maximum of leased ones. */
function dueDeliveries(endpointIds: string[], now: number, limit: number): SQL {
  const nth = (offset: number) => sql`
    select (
      select d.id from webhook_deliveries d
      where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
        and d.next_attempt_at <= ${now}
      order by d.next_attempt_at, d.id limit 1 offset ${sql.raw(String(offset))}
    ) as id from webhook_endpoints
    where webhook_endpoints.id in (${sql.join(
      endpointIds.map((id) => sql`${id}`),
      sql`, `,
    )}) and (select count(*) from ${leasedDeliveries}) < ${sql.raw(String(sendsPerEndpointMax - offset))}`
  return sql`(
    select due.id from (${nth(0)} union all ${nth(1)}) as due where due.id is not null limit ${limit}
  )`
}
