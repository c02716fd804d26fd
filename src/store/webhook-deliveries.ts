import { and, eq, inArray, isNotNull, sql, type SQL } from 'drizzle-orm'
import type { ClaimedDelivery, WebhookDeliveryStore } from '../domain/webhook-deliveries.ts'
import type { Builders, Database } from './database.ts'

export function createWebhookDeliveryStore(
  database: Database,
  on: Builders,
  onDelivery: () => void,
): WebhookDeliveryStore {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints, applications, events } = database.tables

  // Asked for by every event that somebody subscribed to.
  const insert = database.prepare(() =>
    on.insert(deliveries).values({
      id: sql.placeholder('id'),
      endpointId: sql.placeholder('endpointId'),
      eventSeq: sql.placeholder('eventSeq'),
      status: 'pending',
      nextAttemptAt: sql.placeholder('now'),
      createdAt: sql.placeholder('now'),
    }),
  )

  /** The lease, unless it ran out and somebody else took it since. */
  const held = (claim: ClaimedDelivery & { owner: string }) =>
    and(
      eq(deliveries.id, claim.id),
      eq(deliveries.status, 'pending'),
      eq(deliveries.leaseOwner, claim.owner),
      eq(deliveries.attempts, claim.attempt),
    )

  return {
    async insert(delivery) {
      await insert(delivery)
      onDelivery()
    },

    async claim({ owner, now, leaseUntil, limit, except }) {
      const claimed = await on
        .update(deliveries)
        .set({ leaseOwner: owner, leaseUntil, attempts: sql`${deliveries.attempts} + 1` })
        .where(inArray(deliveries.id, dueDeliveries(now, limit, except, database.skipLocked)))
        .returning({
          id: deliveries.id,
          endpointId: deliveries.endpointId,
          attempt: deliveries.attempts,
        })
      return claimed
    },

    async load(ids) {
      const rows = await on
        .select({
          deliveryId: deliveries.id,
          id: events.id,
          url: endpoints.url,
          secret: applications.webhookSecret,
          body: events.payload,
        })
        .from(deliveries)
        .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
        .innerJoin(applications, eq(applications.id, endpoints.appId))
        .innerJoin(events, eq(events.seq, deliveries.eventSeq))
        .where(and(inArray(deliveries.id, ids), eq(endpoints.status, 'enabled'), isNotNull(events.payload)))
      return rows.flatMap(({ deliveryId, body, ...message }) =>
        body === null ? [] : [{ deliveryId, message: { ...message, body } }],
      )
    },

    async finish({ statusCode, error, now, ...claim }) {
      const delivered = error === null
      const ended = await on
        .update(deliveries)
        .set({
          status: delivered ? 'delivered' : 'failed',
          lastStatusCode: statusCode,
          lastError: error,
          nextAttemptAt: null,
          leaseOwner: null,
          leaseUntil: null,
          deliveredAt: delivered ? now : null,
        })
        .where(held(claim))
        .returning({ id: deliveries.id })
      if (ended.length === 0) return
      await on
        .update(endpoints)
        .set(
          delivered
            ? { lastDeliveryAt: now, failingSince: null }
            : { failingSince: sql`coalesce(${endpoints.failingSince}, ${now})` },
        )
        .where(eq(endpoints.id, claim.endpointId))
    },

    async releaseAll() {
      await on
        .update(deliveries)
        .set({ leaseOwner: null, leaseUntil: null })
        .where(and(eq(deliveries.status, 'pending'), isNotNull(deliveries.leaseOwner)))
    },
  }
}

/**
 * The oldest due delivery of each endpoint. It hops from endpoint to endpoint along the index of pending deliveries, so
 * that the backlog of one that hangs costs the others nothing. The words of the index's condition stand in the
 * statement: a bound parameter would keep SQLite from using it.
 */
function dueDeliveries(now: number, limit: number, except: string[], skipLocked: SQL): SQL {
  const withRoom =
    except.length === 0
      ? sql``
      : sql`and e.id not in (${sql.join(
          except.map((id) => sql`${id}`),
          sql`, `,
        )})`
  return sql`(
    with recursive waiting (endpoint_id) as (
      select min(endpoint_id) from webhook_deliveries where status = 'pending'
      union all
      select (
        select min(d.endpoint_id) from webhook_deliveries d
        where d.status = 'pending' and d.endpoint_id > waiting.endpoint_id
      ) from waiting where waiting.endpoint_id is not null
    ),
    oldest (id, failing) as materialized (
      select (
        select d.id from webhook_deliveries d
        where d.endpoint_id = e.id and d.status = 'pending' and d.next_attempt_at <= ${now}
          and (d.lease_until is null or d.lease_until <= ${now})
        order by d.next_attempt_at limit 1 ${skipLocked}
      ), case when e.failing_since is null then 0 else 1 end
      from waiting join webhook_endpoints e on e.id = waiting.endpoint_id
      where e.status = 'enabled' ${withRoom}
    )
    select id from oldest where id is not null order by failing, id limit ${limit}
  )`
}
