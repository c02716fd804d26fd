import { sql, type SQL } from 'drizzle-orm'
import type { PermitHolder } from '../domain/model/fair-permits.ts'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import { leasedDeliveries } from './webhook-delivery-rows.ts'

/**
 * Selects and locks endpoints with a due delivery, in the order of `WebhookOutboxStore.claim`. The due time is stored with
 * the endpoint, so endpoints without due deliveries cost nothing.
 *
 * @param excluded developers with the environment whose deliveries get no permit, as `useKey` writes them
 */
export const dueEndpoints = (
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
export const useKey = ({ developerId, isTest }: PermitHolder) => `${developerId} ${isTest ? 'test' : 'live'}`

/** Selects the oldest due delivery of each endpoint that has less than the maximum of leased ones. */
export const dueDeliveries = ({ endpointIds, now }: { endpointIds: SQL[]; now: SQL }): SQL => sql`(
  select (
    select d.id from webhook_deliveries d
    where d.endpoint_id = webhook_endpoints.id and d.status = 'pending' and d.lease_owner is null
      and d.next_attempt_at <= ${now}
    order by d.next_attempt_at, d.id limit 1
  ) as id from webhook_endpoints
  where webhook_endpoints.id in ${endpointIds}
    and (select count(*) from ${leasedDeliveries}) < ${sql.raw(String(sendsPerEndpointMax))}
)`
