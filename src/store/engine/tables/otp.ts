import type { DeliveryStatus } from '../../../domain/model/request.ts'
import type { ColumnKit } from './columns.ts'
import type { Environment, FailureReason, OtpStatus } from '../../../shared/otp-values.ts'

/** OTP requests, and the users that they verified. */
export function defineOtpTables(c: ColumnKit) {
  const otpRequests = c.table('otp_requests', {
    id: c.text('id').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    projectId: c.shortId('project_id').notNull(),
    appId: c.shortId('app_id').notNull(),
    environment: c.text('environment').notNull().$type<Environment>(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    status: c.text('status').notNull().$type<OtpStatus>(),
    failureReason: c.text('failure_reason').$type<FailureReason>(),
    channel: c.text('channel').notNull(),
    provider: c.text('provider'),
    deliveryStatus: c.text('delivery_status').$type<DeliveryStatus>(),
    locale: c.text('locale'),
    clientIp: c.text('client_ip'),
    metadata: c.text('metadata'),
    ownText: c.text('own_text'),
    template: c.text('template'),
    codeSalt: c.text('code_salt').notNull(),
    codeHash: c.text('code_hash').notNull(),
    attempts: c.integer('attempts').notNull().default(0),
    resends: c.integer('resends').notNull().default(0),
    createdAt: c.timestampMs('created_at').notNull(),
    sentAt: c.timestampMs('sent_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
    verifiedAt: c.timestampMs('verified_at'),
    previousRequest: c.text('previous_request'),
    startedBy: c.text('lane').$type<'known' | 'stranger'>(),
    contexts: c.text('contexts'),
    history: c.text('history').notNull().default(''),
    compat: c.text('compat'),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const inboxMessages = c.table('inbox_messages', {
    seq: c.timestampMs('seq').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    requestId: c.text('request_id').notNull(),
    requestVisible: c.integer('request_visible').notNull(),
    sentAt: c.timestampMs('sent_at').notNull(),
  })

  const phones = c.table('phones', {
    key: c.timestampMs('key').primaryKey(),
    phoneHash: c.text('phone_hash').notNull(),
    developerId: c.shortId('developer_id').notNull(),
    environment: c.text('environment').notNull().$type<Environment>(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    deviceSends: c.text('device_sends'),
    deviceRefilledAt: c.timestampMs('device_refilled_at'),
    deviceFailures: c.integer('device_failures'),
    deviceLockedUntil: c.timestampMs('device_locked_until'),
    knownSends: c.text('known_sends'),
    knownRefilledAt: c.timestampMs('known_refilled_at'),
    knownFailures: c.integer('known_failures'),
    knownLockedUntil: c.timestampMs('known_locked_until'),
    strangerSends: c.text('stranger_sends'),
    strangerRefilledAt: c.timestampMs('stranger_refilled_at'),
    strangerFailures: c.integer('stranger_failures'),
    strangerLockedUntil: c.timestampMs('stranger_locked_until'),
    contexts: c.text('contexts'),
    newestRequest: c.text('newest_request'),
    lastSentAt: c.timestampMs('last_sent_at').notNull(),
    identityId: c.text('identity_id'),
    verificationCount: c.integer('verification_count'),
    firstVerifiedAt: c.timestampMs('first_verified_at'),
    lastVerifiedAt: c.timestampMs('last_verified_at'),
    applications: c.shortIds('applications'),
  })

  /** Written by 0.1.0 alone: the next start moves the rows to `phones`. */
  const identities = c.table('identities', {
    id: c.text('id').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    verificationCount: c.integer('verification_count').notNull(),
    firstVerifiedAt: c.timestampMs('first_verified_at').notNull(),
    lastVerifiedAt: c.timestampMs('last_verified_at').notNull(),
  })

  const identityApplications = c.table('identity_applications', {
    identityId: c.text('identity_id').notNull(),
    appId: c.shortId('app_id').notNull(),
  })

  return {
    otpRequests,
    inboxMessages,
    phones,
    identities,
    identityApplications,
  }
}
