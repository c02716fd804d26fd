import { sql, type SQL } from 'drizzle-orm'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import { integerParam } from './engine/query-params.ts'
import { leasedDeliveries } from './webhook-delivery-rows.ts'

/**
 * Selects and locks endpoints with a due delivery. The due time is stored with the endpoint, so endpoints without due
 * deliveries cost nothing.
 */
export const dueEndpoints = (skipLocked: SQL) => sql`(
  select id from webhook_endpoints where status = 'enabled' and due_at <= ${integerParam('now')}
  order by case when failing_since is null then 0 else 1 end, due_at limit ${integerParam('limit')} ${skipLocked}
)`

/** Selects the one or two oldest due deliveries of each endpoint, up to the maximum of leased ones. */
export function dueDeliveries({
  endpointIds,
  now,
  limit,
}: {
  endpointIds: SQL[]
  now: SQL
  limit: SQL
}): SQL {
  const nth = (offset: number) => sql`
    select (
      select d.id from webhook_deliveries d
      where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
        and d.next_attempt_at <= ${now}
      order by d.next_attempt_at, d.id limit 1 offset ${sql.raw(String(offset))}
    ) as id from webhook_endpoints
    where webhook_endpoints.id in ${endpointIds}
      and (select count(*) from ${leasedDeliveries}) < ${sql.raw(String(sendsPerEndpointMax - offset))}`
  return sql`(
    select due.id from (${nth(0)} union all ${nth(1)}) as due where due.id is not null limit ${limit}
  )`
}
