import { and, eq, inArray, isNotNull, sql, type SQL } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import { type WebhookAttempt, sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import { openWebhookSecret } from './applications.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'
import { payloadRow } from './events.ts'
import { openHeaders } from './webhook-headers.ts'

// Statements that the outbox and the delivery log share.

/**
 * The leased deliveries of the `webhook_endpoints` row of the outer statement. `lease_owner is not null` matches a
 * partial index of SQLite's; without the condition on `lease_until` SQLite would choose an index over all past
 * deliveries.
 */
export const leasedDeliveries = sql`webhook_deliveries d
  where d.endpoint_id = webhook_endpoints.id and d.lease_owner is not null and d.lease_until > 0`

/**
 * The time at which an endpoint may next have something to send: when its first waiting delivery is due or a lease
 * expires. With the maximum of deliveries leased, when the first of those leases expires. Null if nothing is pending.
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

/**
 * Updates the due time of endpoints. Call it last in every transaction that changes their pending deliveries; the
 * transaction must have locked the endpoints first.
 */
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

/**
 * Stores an attempt of a delivery.
 *
 * @param number counts the attempts of the delivery, from 1
 */
export async function recordAttempt(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
  deliveryId: string,
  number: number,
  { at, statusCode, error, durationMs, body }: WebhookAttempt,
): Promise<void> {
  const sealedBody = sealing.sealText(attemptBodyColumn, attemptRow(deliveryId, number), body)
  await executor
    .insert(database.tables.webhookAttempts)
    .values({ deliveryId, number, at, statusCode, error, durationMs, body: sealedBody })
}

/** The beginning of the response. It is sealed because receivers may repeat what they received. */
export const attemptBodyColumn = 'webhook_attempts.body'

/** Names an attempt in the associated data of its sealed body. */
export const attemptRow = (deliveryId: string, number: number) => `${deliveryId} ${number}`

/**
 * Loads the webhook messages of deliveries, with the current URL, headers and signing secret. Omits deliveries whose
 * event has no payload. What cannot be decrypted is null.
 *
 * @param condition restricts deliveries and their endpoints
 */
export async function loadMessages(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
  condition: SQL | undefined,
) {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints, applications, events } = database.tables
  const rows = await executor
    .select({
      deliveryId: deliveries.id,
      endpointId: endpoints.id,
      appId: endpoints.appId,
      ...eventIdColumns(events),
      requestId: events.requestId,
      type: events.type,
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
  const ids = await loadEventIds(database, executor)
  return rows.map((row) => {
    const { eventId, appId, secret, headers, body, requestId, type, ...message } = withEventId(ids, row)
    return {
      ...message,
      id: eventId,
      secret: openWebhookSecret(sealing, appId, secret),
      headers: openHeaders(sealing, message.endpointId, headers),
      body: sealing.openText('events.payload', payloadRow({ requestId, type, at: row.eventAt }), body),
    }
  })
}
