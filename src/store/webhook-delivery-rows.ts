import { and, eq, inArray, isNotNull, sql, type SQL } from 'drizzle-orm'
import type { WebhookAttempt } from '../domain/webhooks/delivery.ts'
import { sendsPerEndpointMax } from '../domain/webhooks/outbox.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, withEventId } from './events.ts'
import { parseHeaders } from './webhook-endpoints.ts'

// Statements that the outbox and the delivery log share.

/**
 * The leases of the `webhook_endpoints` of the statement around. `lease_owner is not null` is how SQLite knows its partial
 * index; without the condition on `lease_until` it takes one that walks over all that was ever delivered.
 */
export const leasedDeliveries = sql`webhook_deliveries d
  where d.endpoint_id = webhook_endpoints.id and d.lease_owner is not null and d.lease_until > 0`

/**
 * When there may be something to send to an endpoint: as soon as the first waiting delivery is due, or a lease runs out;
 * where as many are under way as may be, not before one of them ends. Null where nothing waits.
 */
export const earliestDue = sql`case
  when (select count(*) from ${leasedDeliveries}) >= ${sql.raw(String(sendsPerEndpointMax))} then (select min(d.lease_until) from ${leasedDeliveries})
  else (select min(times.at) from (
    select min(d.next_attempt_at) as at from webhook_deliveries d
      where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
    union all
    select min(d.lease_until) from ${leasedDeliveries}
  ) as times)
end`

/** To be called last in every transaction that changed what waits, which holds these endpoints since before that. */
export async function recomputeDueAt(
  database: Database,
  executor: QueryExecutor,
  endpointIds: string[],
): Promise<void> {
  const { webhookEndpoints } = database.tables
  await executor
    .update(webhookEndpoints)
    .set({ dueAt: earliestDue })
    .where(inArray(webhookEndpoints.id, endpointIds))
}

/** @param number how many attempts of the delivery there are with this one */
export async function recordAttempt(
  database: Database,
  executor: QueryExecutor,
  deliveryId: string,
  number: number,
  { at, statusCode, error, durationMs, body }: WebhookAttempt,
): Promise<void> {
  await executor
    .insert(database.tables.webhookAttempts)
    .values({ deliveryId, number, at, statusCode, error, durationMs, body })
}

/**
 * What is sent for deliveries: where to, with what, signed with the secret of the moment. Leaves out those whose event has
 * no payload.
 *
 * @param condition condition on deliveries and their endpoints
 */
export async function loadMessages(database: Database, executor: QueryExecutor, condition: SQL | undefined) {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints, applications, events } = database.tables
  const rows = await executor
    .select({
      deliveryId: deliveries.id,
      endpointId: endpoints.id,
      ...eventIdColumns(events),
      url: endpoints.url,
      secret: applications.webhookSecret,
      headers: endpoints.headers,
      body: events.payload,
    })
    .from(deliveries)
    .innerJoin(endpoints, eq(endpoints.id, deliveries.endpointId))
    .innerJoin(applications, eq(applications.id, endpoints.appId))
    .innerJoin(events, eq(events.seq, deliveries.eventSeq))
    .where(and(condition, isNotNull(events.payload)))
  return rows
    .map(withEventId)
    .flatMap(({ eventId, body, headers, ...message }) =>
      body === null ? [] : [{ ...message, id: eventId, headers: parseHeaders(headers), body }],
    )
}
