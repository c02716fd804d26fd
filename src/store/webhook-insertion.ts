import { count, eq, sql } from 'drizzle-orm'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import type {
  DeliveryLease,
  DeliveryQueue,
  LeasedDelivery,
  NewDelivery,
  WebhookOutboxStore,
} from '../domain/store/webhook-outbox.ts'
import { prepareEnvironment } from './app-environments.ts'
import type { Connection } from './engine/connection.ts'
import type { SqliteParts } from './engine/database.ts'
import { columnsOf, insertInto, type RowWrite, rowsOf } from './engine/row-writes.ts'
import type { Tables } from './engine/tables.ts'
import { afterLastSeq } from './event-ids.ts'
import { changeDeliveryLists } from './list-changes.ts'

export type OutboxNeeds = Pick<DeliveryQueue, 'offerLease'> & {
  onDelivery(): void
  onLeased(delivery: LeasedDelivery): void
}

/**
 * Creates the part of the outbox that runs for every event with a subscriber.
 *
 * @param needs.offerLease leases deliveries when they are inserted
 * @param needs.onDelivery called when a delivery becomes due, before the transaction commits
 * @param needs.onLeased called with each delivery that was inserted with a lease, before the transaction commits
 */
export function createDeliveryInsertion(
  connection: Connection,
  needs: OutboxNeeds,
): Pick<WebhookOutboxStore, 'insert' | 'lockEndpoints'> {
  const { database, executor } = connection
  const insert = database.writeRows(executor, insertDeliveries(database.tables))
  const insertOne = database.sqlite && createInsertion(connection, database.sqlite, needs, insert)
  // PostgreSQL
  const makeDue = database.writeRows(executor, makeEndpointsDue)

  return {
    lockEndpoints(endpointIds, now) {
      if (database.postgres) makeDue(endpointIds.map((id) => ({ id, dueAt: now })))
    },

    insert(list) {
      if (insertOne) return list.forEach(insertOne)
      insert(list.map((delivery) => ({ ...delivery, status: 'pending', nextAttemptAt: delivery.now })))
      needs.onDelivery()
    },
  }
}

/** Creates the insertion of a delivery on SQLite, which leases it if it can be sent at once. */
function createInsertion(
  connection: Connection,
  sqlite: SqliteParts,
  { offerLease, onDelivery, onLeased }: OutboxNeeds,
  insert: (rows: readonly DeliveryRow[]) => void,
) {
  const { database, executor } = connection
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints } = database.tables
  const findEnvironment = prepareEnvironment(connection, sqlite)
  const p = sql.placeholder
  // A delivery is leased only if the endpoint is due later than `now` then: it is not failing, and nothing else is due.
  const setDue = sqlite.prepare(() =>
    executor
      .update(endpoints)
      .set({
        dueAt: sql`case when due_at <= ${p('now')} then due_at
          when failing_since is null then case when due_at <= ${p('leaseUntil')} then due_at else ${p('leaseUntil')} end
          else ${p('now')} end`,
      })
      .where(eq(endpoints.id, p('endpointId')))
      .returning({ dueAt: endpoints.dueAt, status: endpoints.status }),
  )
  // The condition on `lease_until` is explained at `leasedDeliveries`.
  const countLeased = sqlite.prepare(() =>
    executor
      .select({ count: count() })
      .from(deliveries)
      .where(sql`endpoint_id = ${p('endpointId')} and lease_owner is not null and lease_until > 0`),
  )

  return ({ payload, developerId, ...delivery }: NewDelivery): void => {
    const { id, endpointId, appId, now } = delivery
    const isTest = appId !== null && findEnvironment(appId) === 'test'
    const lease = offerLease(now, { developerId, isTest })
    const [endpoint] = setDue({ endpointId, now, leaseUntil: lease?.leaseUntil ?? now })
    // The endpoint was deleted concurrently, after its subscription was read.
    if (!endpoint) return
    if (endpoint.status === 'disabled') {
      changeDeliveryLists(database, delivery, { from: [], to: 'skipped' })
      return insert([{ ...delivery, status: 'skipped', nextAttemptAt: null }])
    }
    changeDeliveryLists(database, delivery, { from: [], to: 'pending' })
    const canBeLeased = lease && endpoint.dueAt !== null && endpoint.dueAt > now
    const [leased] = canBeLeased ? countLeased({ endpointId }) : []
    if (lease && leased && leased.count < sendsPerEndpointMax) {
      const { leaseUntil } = lease
      insert([{ ...delivery, status: 'pending', nextAttemptAt: now, lease }])
      onLeased({ id, endpointId, claim: 1, failures: 0, leaseUntil, payload, developerId, isTest })
    } else {
      insert([{ ...delivery, status: 'pending', nextAttemptAt: now }])
      onDelivery()
    }
  }
}

const isEnabled = `exists (select from webhook_endpoints where id = given.endpoint_id and status = 'enabled')`

type DeliveryRow = Omit<NewDelivery, 'payload' | 'developerId' | 'appId'> & {
  status: 'pending' | 'skipped'
  nextAttemptAt: number | null
  lease?: DeliveryLease
}

/** Writes an insert of deliveries. */
const insertDeliveries = ({ webhookDeliveries }: Pick<Tables, 'webhookDeliveries'>) =>
  insertInto(
    columnsOf<typeof webhookDeliveries, DeliveryRow>(webhookDeliveries, {
      attempts: () => 0,
      claims: ({ lease }) => (lease ? 1 : 0),
      failures: () => 0,
      lastStatusCode: () => null,
      lastError: () => null,
      leaseOwner: ({ lease }) => lease?.owner ?? null,
      leaseUntil: ({ lease }) => lease?.leaseUntil ?? null,
      createdAt: ({ now }) => now,
      deliveredAt: () => null,
    }),
    {
      computed: {
        eventSeq: afterLastSeq('given.event_seq'),
        // On PostgreSQL `lockEndpoints` has locked the endpoint: it cannot be enabled or disabled meanwhile.
        status: `case when ${isEnabled} then given.status else 'skipped' end`,
        nextAttemptAt: `case when ${isEnabled} then given.next_attempt_at end`,
      },
      // On PostgreSQL the endpoint may have been deleted after its subscription was read. `lockEndpoints` has locked it.
      onlyIf: 'exists (select from webhook_endpoints where id = given.endpoint_id)',
    },
  )

/** Makes endpoints due, on PostgreSQL. */
const makeEndpointsDue: RowWrite<EndpointDue> = {
  columns: ['id', 'due_at'],
  toValues: ({ id, dueAt }) => [id, dueAt],
  sqlite: undefined,
  postgres: `update webhook_endpoints set due_at = least(webhook_endpoints.due_at, given.due_at)
    from ${rowsOf('webhook_endpoints')} where webhook_endpoints.id = given.id`,
}

type EndpointDue = { id: string; dueAt: number }
