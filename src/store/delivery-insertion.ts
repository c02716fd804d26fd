import { count, eq, sql, type SQL } from 'drizzle-orm'
import { sendsPerEndpointMax } from '../domain/model/webhook-delivery.ts'
import type { DeliveryQueue, LeasedDelivery, WebhookOutboxStore } from '../domain/store/webhook-outbox.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { afterLastSeq } from './events.ts'
import { noteDelivery } from './list-changes.ts'

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
  database: Database,
  executor: QueryExecutor,
  { offerLease, onDelivery, onLeased }: OutboxNeeds,
): Pick<WebhookOutboxStore, 'insert' | 'lockEndpoints'> {
  const { webhookDeliveries: deliveries, webhookEndpoints: endpoints } = database.tables
  const p = sql.placeholder

  // Without a condition on `due_at`, which would be evaluated before a
  // concurrent transaction changes it. The result is later than `now` only if nothing else is due, and the endpoint is
  // not failing.
  const setDue = database.prepare(() =>
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
  const countLeased = database.prepare(() =>
    executor
      .select({ count: count() })
      .from(deliveries)
      .where(sql`endpoint_id = ${p('endpointId')} and lease_owner is not null and lease_until > 0`),
  )
  const isEnabled = (endpointId: SQL) =>
    sql`exists (select from ${endpoints} where ${endpoints.id} = ${endpointId} and ${endpoints.status} = 'enabled')`
  const insert = database.writeRows(executor, {
    kind: 'insert',
    table: deliveries,
    columns: [
      'id',
      'endpointId',
      'eventSeq',
      'type',
      'status',
      'nextAttemptAt',
      'createdAt',
      'leaseOwner',
      'leaseUntil',
      'claims',
    ],
    computed: {
      eventSeq: (offset) => afterLastSeq(database, offset),
      attempts: () => sql`0`,
      failures: () => sql`0`,
      // `lockEndpoints` has locked the endpoint: it cannot be enabled or disabled meanwhile.
      status: (status, valueOf) =>
        sql`case when ${isEnabled(valueOf('endpointId'))} then ${status} else 'skipped' end`,
      nextAttemptAt: (time, valueOf) => sql`case when ${isEnabled(valueOf('endpointId'))} then ${time} end`,
    },
    // The endpoint may have been deleted after its subscription was read. `makeDue` has locked it.
    onlyIf: (value) => sql`exists (select from ${endpoints} where ${endpoints.id} = ${value('endpointId')})`,
  })
  // PostgreSQL
  const makeDue = database.writeRows(executor, {
    kind: 'update',
    table: endpoints,
    key: ['id'],
    set: ['dueAt'],
    computed: { dueAt: (now) => sql`least(${endpoints.dueAt}, ${now})` },
  })
  const findEnvironment = createEnvironmentLookup(database, executor)
  const unleased = { leaseOwner: null, leaseUntil: null, claims: 0 }

  return {
    async lockEndpoints(endpointIds, now) {
      if (database.isConcurrent) for (const id of endpointIds) await makeDue({ id, dueAt: now })
    },

    async insert({ message, developerId, appId, ...delivery }) {
      const { id, endpointId, now } = delivery
      const row = { ...delivery, status: 'pending', nextAttemptAt: now, createdAt: now }
      if (database.isConcurrent) {
        await insert({ ...row, ...unleased })
        return onDelivery()
      }
      const isTest = appId !== null && (await findEnvironment(appId)) === 'test'
      const lease = offerLease(now, { developerId, isTest })
      const [endpoint] = await setDue({ endpointId, now, leaseUntil: lease?.leaseUntil ?? now })
      // The endpoint was deleted concurrently, after its subscription was read.
      if (!endpoint) return
      if (endpoint.status === 'disabled') {
        noteDelivery(database, delivery, 'skipped')
        return void (await insert({ ...row, ...unleased, status: 'skipped', nextAttemptAt: null }))
      }
      noteDelivery(database, delivery, 'added')
      const canBeLeased = lease && endpoint.dueAt !== null && endpoint.dueAt > now
      const [leased] = canBeLeased ? await countLeased({ endpointId }) : []
      if (lease && leased && leased.count < sendsPerEndpointMax) {
        const { owner, leaseUntil } = lease
        await insert({ ...row, leaseOwner: owner, leaseUntil, claims: 1 })
        onLeased({ id, endpointId, claim: 1, failures: 0, leaseUntil, message, developerId, isTest })
      } else {
        await insert({ ...row, ...unleased })
        onDelivery()
      }
    },
  }
}
