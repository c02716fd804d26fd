import { inArray, sql } from 'drizzle-orm'
import { sendsPerEndpointMax } from '../domain/webhooks/outbox.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

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
