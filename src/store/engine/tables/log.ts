import type { WebhookDeliveryStatus, WebhookError } from '../../../domain/model/webhook-delivery.ts'
import type { ColumnKit } from './columns.ts'

/** The event log, its webhooks and its daily counts. */
export function defineLogTables(c: ColumnKit) {
  const events = c.table('events', {
    seq: c.timestampMs('seq').primaryKey(),
    id: c.text('id'),
    type: c.text('type').notNull(),
    developerId: c.shortId('developer_id').notNull(),
    appId: c.shortId('app_id'),
    requestId: c.text('request_id'),
    phone: c.text('phone'),
    status: c.text('status'),
    detail: c.text('detail'),
    payload: c.text('payload'),
    at: c.timestampMs('at').notNull(),
  })

  const webhookEndpoints = c.table('webhook_endpoints', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    appId: c.text('app_id').notNull(),
    url: c.text('url').notNull(),
    events: c.text('events').notNull(),
    status: c.text('status').notNull().$type<'enabled' | 'disabled'>(),
    disabledReason: c.text('disabled_reason').$type<'failing' | 'gone'>(),
    failingSince: c.timestampMs('failing_since'),
    lastDeliveryAt: c.timestampMs('last_delivery_at'),
    description: c.text('description'),
    headers: c.text('headers'),
    dueAt: c.timestampMs('due_at'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const webhookDeliveries = c.table('webhook_deliveries', {
    id: c.text('id').primaryKey(),
    endpointId: c.text('endpoint_id').notNull(),
    eventSeq: c.timestampMs('event_seq').notNull(),
    type: c.text('type').notNull(),
    status: c.text('status').notNull().$type<WebhookDeliveryStatus>(),
    attempts: c.integer('attempts').notNull().default(0),
    claims: c.integer('claims').notNull().default(0),
    failures: c.integer('failures').notNull().default(0),
    lastStatusCode: c.integer('last_status_code'),
    lastError: c.text('last_error').$type<WebhookError>(),
    nextAttemptAt: c.timestampMs('next_attempt_at'),
    leaseOwner: c.text('lease_owner'),
    leaseUntil: c.timestampMs('lease_until'),
    createdAt: c.timestampMs('created_at').notNull(),
    deliveredAt: c.timestampMs('delivered_at'),
  })

  const webhookAttempts = c.table('webhook_attempts', {
    deliveryId: c.text('delivery_id').notNull(),
    number: c.integer('number').notNull(),
    at: c.timestampMs('at').notNull(),
    statusCode: c.integer('status_code'),
    error: c.text('error').$type<WebhookError>(),
    durationMs: c.integer('duration_ms').notNull(),
    body: c.text('body'),
    request: c.text('request'),
  })

  const dailyCounts = c.table('daily_counts', {
    developerId: c.text('developer_id').notNull(),
    day: c.integer('day').notNull(),
    requests: c.integer('requests').notNull().default(0),
    queued: c.integer('sent').notNull().default(0),
    verified: c.integer('verified').notNull().default(0),
    failed: c.integer('failed').notNull().default(0),
    active: c.integer('active').notNull().default(0),
    testRequests: c.integer('test_requests').notNull().default(0),
    testQueued: c.integer('test_sent').notNull().default(0),
    testVerified: c.integer('test_verified').notNull().default(0),
    testFailed: c.integer('test_failed').notNull().default(0),
    testActive: c.integer('test_active').notNull().default(0),
  })

  const breakdownCounts = c.table('breakdown_counts', {
    day: c.integer('day').notNull(),
    developerId: c.shortId('developer_id').notNull(),
    appId: c.shortId('app_id').notNull(),
    country: c.text('country').notNull(),
    channel: c.text('channel').notNull(),
    provider: c.text('provider').notNull(),
    requests: c.integer('requests').notNull().default(0),
    sent: c.integer('sent').notNull().default(0),
    delivered: c.integer('delivered').notNull().default(0),
    undelivered: c.integer('undelivered').notNull().default(0),
    verified: c.integer('verified').notNull().default(0),
    failed: c.integer('failed').notNull().default(0),
    cost: c.timestampMs('cost').notNull().default(0),
    estimatedCost: c.timestampMs('estimated_cost').notNull().default(0),
    unpriced: c.integer('unpriced').notNull().default(0),
    relayed: c.integer('relayed').notNull().default(0),
    relayedCost: c.timestampMs('relayed_cost').notNull().default(0),
    blocked: c.integer('blocked').notNull().default(0),
    verified5s: c.integer('verified_5s').notNull().default(0),
    verified10s: c.integer('verified_10s').notNull().default(0),
    verified20s: c.integer('verified_20s').notNull().default(0),
    verified30s: c.integer('verified_30s').notNull().default(0),
    verified60s: c.integer('verified_60s').notNull().default(0),
    verified120s: c.integer('verified_120s').notNull().default(0),
    verifiedLater: c.integer('verified_later').notNull().default(0),
  })

  return { events, webhookEndpoints, webhookDeliveries, webhookAttempts, dailyCounts, breakdownCounts }
}
