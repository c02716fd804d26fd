import { and, eq, isNotNull, type SQL } from 'drizzle-orm'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, withEventId } from './engine/event-id-columns.ts'
import { parseHeaders } from './webhook-endpoints.ts'

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
