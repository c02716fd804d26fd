import { and, eq, isNotNull, sql, type SQL } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import { type WebhookAttempt, sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import type { EndpointTarget, StoredWebhookMessage } from '../domain/store/webhook-outbox.ts'
import { openWebhookSecret } from './applications.ts'
import type { Connection } from './engine/connection.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'
import { payloadRow } from './engine/sealing.ts'
import { prepareFiltered, type FilterPlaceholders } from './engine/query-params.ts'
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
 * Prepares the statement that updates the due time of endpoints. Run it last in every transaction that changes their pending
 * deliveries; the transaction must have locked the endpoints first.
 */
export const prepareRecomputeDue = ({ database, executor }: Connection) => {
  const { webhookEndpoints } = database.tables
  return prepareFiltered(
    database,
    ({ endpointIds }: FilterPlaceholders<{ endpointIds: readonly string[] }>) =>
      executor
        .update(webhookEndpoints)
        .set({ dueAt: earliestDue })
        .where(sql`${webhookEndpoints.id} in ${endpointIds}`),
  )
}

/** Prepares the statement that stores an attempt; `number` counts the attempts of the delivery, from 1. */
export function prepareRecordAttempt({ database, executor, sealing }: Connection) {
  const p = sql.placeholder
  const insert = database.prepare(() =>
    executor.insert(database.tables.webhookAttempts).values({
      deliveryId: p('deliveryId'),
      number: p('number'),
      at: p('at'),
      statusCode: p('statusCode'),
      error: p('error'),
      durationMs: p('durationMs'),
      body: p('body'),
      request: p('request'),
    }),
  )
  return async (deliveryId: string, number: number, attempt: WebhookAttempt): Promise<void> => {
    const body = sealing.sealText(attemptBodyColumn, attemptRow(deliveryId, number), attempt.body)
    const request = attempt.request && JSON.stringify(attempt.request)
    await insert({ ...attempt, deliveryId, number, body, request })
  }
}

/** The beginning of the response. It is sealed because receivers may repeat what they received. */
export const attemptBodyColumn = 'webhook_attempts.body'

/** Names an attempt in the associated data of its sealed body. */
export const attemptRow = (deliveryId: string, number: number) => `${deliveryId} ${number}`

/**
 * Builds the query for the webhook messages of deliveries, with the current URL, headers and signing secret. Omits
 * deliveries whose event has no payload.
 *
 * @param condition restricts deliveries and their endpoints
 */
export function selectMessages({ database, executor }: Connection, condition: SQL | undefined) {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints, applications, events } = database.tables
  return executor
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
}

/** Decrypts what `selectMessages` found. What cannot be decrypted is null. */
export async function openMessages(
  connection: Connection,
  rows: Awaited<ReturnType<typeof selectMessages>>,
): Promise<StoredWebhookMessage[]> {
  const { sealing } = connection
  const ids = await loadEventIds(connection)
  return rows.map((row) => {
    const { eventId, body, requestId, type, deliveryId, ...target } = withEventId(ids, row)
    return {
      deliveryId,
      id: eventId,
      ...openTarget(sealing, target),
      body: sealing.openText('events.payload', payloadRow({ requestId, type, at: row.eventAt }), body),
    }
  })
}

/** Decrypts the secret and the headers of an endpoint. What cannot be decrypted is null. */
export function openTarget(
  sealing: Sealing,
  row: { endpointId: string; appId: string; url: string; secret: string; headers: string | null },
): EndpointTarget {
  const { endpointId, appId, url, secret, headers } = row
  return {
    url,
    secret: openWebhookSecret(sealing, appId, secret),
    headers: openHeaders(sealing, endpointId, headers),
  }
}
