import type { FailureClass, Receipt } from '../../../domain/model/delivery.ts'
import type { MessageStatus } from '../../../domain/model/message.ts'
import type { RelayedMessage, RelayOutcome } from '../../../domain/model/relayed-message.ts'
import type { ColumnKit } from './columns.ts'
import type { Channel, Environment } from '../../../shared/otp-values.ts'

/** Messages that providers get, receipts that came early, providers whose circuit is open, and statistics of routes. */
export const defineDeliveryTables = (c: ColumnKit) => ({
  messages: c.table('otp_deliveries', {
    requestId: c.text('request_id').notNull(),
    messageNumber: c.integer('message').notNull(),
    channels: c.text('channels').notNull(),
    status: c.text('status').notNull().$type<MessageStatus>(),
    provider: c.text('provider'),
    messageId: c.text('message_id'),
    failure: c.text('failure').$type<FailureClass>(),
    excluded: c.text('excluded').notNull().default(''),
    attempts: c.integer('attempts').notNull().default(0),
    nextAttemptAt: c.timestampMs('next_attempt_at'),
    leaseOwner: c.text('lease_owner'),
    leaseUntil: c.timestampMs('lease_until'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
    reportDueAt: c.timestampMs('report_due_at'),
    estimatedPrice: c.timestampMs('estimated_price'),
    chargedPrice: c.timestampMs('charged_price'),
  }),

  providerCircuits: c.table('provider_circuits', {
    node: c.text('node').notNull(),
    name: c.text('name').notNull(),
    failure: c.text('failure').notNull().$type<FailureClass>(),
    openUntil: c.timestampMs('open_until').notNull(),
  }),

  earlyReceipts: c.table('early_receipts', {
    provider: c.text('provider').notNull(),
    messageId: c.text('message_id').notNull(),
    requestId: c.text('request_id').notNull(),
    status: c.text('status').notNull().$type<Receipt['status']>(),
    failure: c.text('failure'),
    receivedAt: c.timestampMs('received_at').notNull(),
    charge: c.timestampMs('charge'),
  }),

  relayedMessages: c.table('relayed_messages', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    projectId: c.text('project_id').notNull(),
    appId: c.text('app_id').notNull(),
    environment: c.text('environment').notNull().$type<Environment>(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    channel: c.text('channel').notNull().$type<Channel>(),
    provider: c.text('provider').notNull(),
    messageId: c.text('message_id'),
    status: c.text('status').notNull().$type<RelayedMessage['status']>(),
    createdAt: c.timestampMs('created_at').notNull(),
    clientIp: c.text('client_ip'),
    outcome: c.text('outcome').$type<RelayOutcome>(),
    estimatedPrice: c.timestampMs('estimated_price'),
    chargedPrice: c.timestampMs('charged_price'),
  }),

  routeStatistics: c.table('route_statistics', {
    cell: c.text('cell').primaryKey(),
    outcomes: c.integer('outcomes').notNull(),
    verified: c.integer('verified').notNull(),
    at: c.timestampMs('counted_at').notNull(),
    verifiedSentAt: c.timestampMs('verified_sent_at').notNull(),
    silentSince: c.timestampMs('silent_since').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),
})
