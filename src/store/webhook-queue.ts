import { and, count, eq, inArray, isNotNull, lte, min, sql, type SQL } from 'drizzle-orm'
import {
  sendsPerEndpointMax,
  type ClaimedDelivery,
  type DeliveryClaim,
  type WebhookQueueStore,
} from '../domain/webhooks/outbox.ts'
import type { Builders, Database } from './engine/database.ts'
import { earliestDue, leased, settleDue } from './webhook-due.ts'
import { loadMessages } from './webhook-messages.ts'
import { recordAttempt } from './webhook-attempts.ts'

/**
 * Whoever changes what waits for an endpoint updates the endpoint first, and so holds it: when it is due is then settled
 * from what is really there. On PostgreSQL the outcome of a race would otherwise be a delivery that nobody looks for.
 *
 * @param onDelivery told that a delivery waits, before the transaction ends
 */
export function createWebhookQueueStore(
  database: Database,
  on: Builders,
  onDelivery: () => void,
): WebhookQueueStore {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints } = database.tables
  const p = sql.placeholder

  // Asked for by every event that somebody subscribed to. Unconditional, since a condition would be judged by what
  // another transaction is about to change.
  const setDue = database.prepare(() =>
    on
      .update(endpoints)
      .set({ dueAt: sql`case when due_at <= ${p('now')} then due_at else ${p('now')} end` })
      .where(eq(endpoints.id, p('endpointId')))
      .returning({ id: endpoints.id }),
  )
  const insert = database.prepare(() =>
    on.insert(deliveries).values({
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
    on
      .select({ id: endpoints.id })
      .from(endpoints)
      .where(inArray(endpoints.id, dueEndpoints(database.skipLocked))),
  )
  const hold = database.prepare(() =>
    on
      .update(endpoints)
      .set({ dueAt: sql`due_at` })
      .where(eq(endpoints.id, p('endpointId'))),
  )
  const settle = database.prepare(() =>
    on
      .update(endpoints)
      .set({
        failingSince: sql`case ${p('outcome')} when 'failed' then coalesce(failing_since, ${p('now')}) when 'delivered' then null else failing_since end`,
        lastDeliveryAt: sql`case ${p('outcome')} when 'delivered' then ${p('now')} else last_delivery_at end`,
        dueAt: earliestDue,
      })
      .where(eq(endpoints.id, p('endpointId')))
      .returning({ failingSince: endpoints.failingSince }),
  )

  /** The lease, unless it ran out and somebody else took it since. */
  const held = (claim: ClaimedDelivery & { owner: string }) =>
    and(
      eq(deliveries.id, claim.id),
      eq(deliveries.status, 'pending'),
      eq(deliveries.leaseOwner, claim.owner),
      eq(deliveries.claims, claim.claim),
    )
  const noLease = { leaseOwner: null, leaseUntil: null }

  async function claimOf(endpointIds: string[], { owner, now, leaseUntil, limit }: DeliveryClaim) {
    const ranOut = and(isNotNull(deliveries.leaseOwner), lte(deliveries.leaseUntil, now))
    await on
      .update(deliveries)
      .set(noLease)
      .where(and(inArray(deliveries.endpointId, endpointIds), ranOut))
    const claimed = await on
      .update(deliveries)
      .set({ leaseOwner: owner, leaseUntil, claims: sql`${deliveries.claims} + 1` })
      .where(inArray(deliveries.id, dueDeliveries(endpointIds, now, limit)))
      .returning({
        id: deliveries.id,
        endpointId: deliveries.endpointId,
        claim: deliveries.claims,
        failures: deliveries.failures,
      })
    await settleDue(database, on, endpointIds)
    return claimed
  }

  return {
    async insert(delivery) {
      const subscribed = await setDue({ endpointId: delivery.endpointId, now: delivery.now })
      // Deleted by another call since its subscription was read: nobody is left to be told.
      if (subscribed.length === 0) return
      await insert(delivery)
      onDelivery()
    },

    async claim({ limit, ...claim }) {
      const claimed: ClaimedDelivery[] = []
      while (claimed.length < limit) {
        const room = limit - claimed.length
        const due = (await findDue({ now: claim.now, limit: room })).map(({ id }) => id)
        // What looked due may have been full or empty, and must take nobody's place.
        if (due.length === 0) break
        claimed.push(...(await claimOf(due, { ...claim, limit: room })))
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await on
        .select({ at: min(endpoints.dueAt) })
        .from(endpoints)
        .where(sql`status = 'enabled' and due_at is not null`)
      return row?.at ?? undefined
    },

    async backlog(limit) {
      // Spelled out, as the index has it.
      const waits = sql`${deliveries.status} = 'pending' and ${deliveries.leaseOwner} is null`
      const waiting = on
        .select({ id: deliveries.id })
        .from(deliveries)
        .where(waits)
        .limit(limit)
        .as('waiting')
      const [row] = await on.select({ pending: count(), oldest: min(waiting.id) }).from(waiting)
      if (!row?.oldest) return { pending: 0, oldestAt: null }
      const [oldest] = await on
        .select({ createdAt: deliveries.createdAt })
        .from(deliveries)
        .where(eq(deliveries.id, row.oldest))
      return { pending: row.pending, oldestAt: oldest?.createdAt ?? null }
    },

    load: (ids) =>
      loadMessages(database, on, and(inArray(deliveries.id, ids), eq(endpoints.status, 'enabled'))),

    async release(claim) {
      await hold({ endpointId: claim.endpointId })
      await on.update(deliveries).set(noLease).where(held(claim))
      await settleDue(database, on, [claim.endpointId])
    },

    async finish({ attempt, retryAt, now, ...claim }) {
      const { endpointId } = claim
      await hold({ endpointId })
      const delivered = attempt.error === null
      const [written] = await on
        .update(deliveries)
        .set({
          ...noLease,
          status: delivered ? 'delivered' : retryAt === null ? 'failed' : 'pending',
          attempts: sql`${deliveries.attempts} + 1`,
          failures: claim.failures + (delivered ? 0 : 1),
          lastStatusCode: attempt.statusCode,
          lastError: attempt.error,
          nextAttemptAt: delivered ? null : retryAt,
          deliveredAt: delivered ? now : null,
        })
        .where(held(claim))
        .returning({ attempts: deliveries.attempts })
      if (written) await recordAttempt(database, on, claim.id, written.attempts, attempt)
      const outcome = written ? (delivered ? 'delivered' : 'failed') : 'lost'
      const [endpoint] = await settle({ endpointId, now, outcome })
      return written ? (endpoint?.failingSince ?? null) : null
    },

    async releaseAll() {
      const leases = isNotNull(deliveries.leaseOwner)
      await on
        .update(endpoints)
        .set({ dueAt: 0 })
        .where(inArray(endpoints.id, on.select({ id: deliveries.endpointId }).from(deliveries).where(leases)))
      await on.update(deliveries).set(noLease).where(leases)
    },
  }
}

/**
 * Endpoints with something due, held until the transaction ends. Which are due stands at the endpoint, so that those
 * with nothing but waiting or ended deliveries cost nothing.
 */
const dueEndpoints = (skipLocked: SQL) => sql`(
  select id from webhook_endpoints where status = 'enabled' and due_at <= ${sql.placeholder('now')}
  order by case when failing_since is null then 0 else 1 end, due_at limit ${sql.placeholder('limit')} ${skipLocked}
)`

/** The one or two oldest due deliveries of these endpoints, as far as there is room beside those under way. */
function dueDeliveries(endpointIds: string[], now: number, limit: number): SQL {
  const nth = (skipped: number) => sql`
    select (
      select d.id from webhook_deliveries d
      where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
        and d.next_attempt_at <= ${now}
      order by d.next_attempt_at, d.id limit 1 offset ${sql.raw(String(skipped))}
    ) as id from webhook_endpoints
    where webhook_endpoints.id in (${sql.join(
      endpointIds.map((id) => sql`${id}`),
      sql`, `,
    )}) and (select count(*) from ${leased}) < ${sql.raw(String(sendsPerEndpointMax - skipped))}`
  return sql`(
    select due.id from (${nth(0)} union all ${nth(1)}) as due where due.id is not null limit ${limit}
  )`
}
