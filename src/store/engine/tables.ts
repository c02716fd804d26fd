import type { WebhookError } from '../../domain/webhooks/delivery.ts'
import type { ColumnKit } from './columns.ts'
import { defineOperationsTables } from './tables-operations.ts'

/**
 * Every table, once, for both databases. Constraints and indexes live in migrations/; here stand the columns that
 * queries name.
 */
export function defineTables(c: ColumnKit) {
  const meta = c.table('meta', { name: c.text('name').primaryKey(), value: c.text('value').notNull() })

  const counters = c.table('counters', {
    name: c.text('name').primaryKey(),
    value: c.timestampMs('value').notNull(),
  })

  const developers = c.table('developers', {
    id: c.text('id').primaryKey(),
    issuer: c.text('issuer'),
    subject: c.text('subject'),
    email: c.text('email'),
    name: c.text('name'),
    company: c.text('company'),
    plan: c.text('plan').notNull(),
    virtualPhone: c.text('virtual_phone').notNull(),
    status: c.text('status').notNull().$type<'active' | 'disabled'>(),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const accounts = c.table('accounts', {
    developerId: c.text('developer_id').primaryKey(),
    email: c.text('email').notNull(),
    passwordHash: c.text('password_hash').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const setupTokens = c.table('setup_tokens', {
    hash: c.text('hash').primaryKey(),
    first: c.integer('first').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
  })

  const refreshTokens = c.table('refresh_tokens', {
    hash: c.text('hash').primaryKey(),
    family: c.text('family').notNull(),
    developerId: c.text('developer_id').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
    usedAt: c.timestampMs('used_at'),
  })

  const signingKeys = c.table('signing_keys', {
    kid: c.text('kid').primaryKey(),
    publicJwk: c.text('public_jwk').notNull(),
    privateKey: c.text('private_key').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    retiredAt: c.timestampMs('retired_at'),
  })

  const projects = c.table('projects', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    name: c.text('name').notNull(),
    description: c.text('description'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const applications = c.table('applications', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    projectId: c.text('project_id').notNull(),
    name: c.text('name').notNull(),
    environment: c.text('environment').notNull().$type<'live' | 'test'>(),
    status: c.text('status').notNull().$type<'active' | 'disabled'>(),
    otpTtlSeconds: c.integer('otp_ttl_seconds').notNull(),
    clientIdSalt: c.text('client_id_salt').notNull(),
    clientIdHash: c.text('client_id_hash').notNull(),
    clientSecretSalt: c.text('client_secret_salt').notNull(),
    clientSecretHash: c.text('client_secret_hash').notNull(),
    clientSecretPreview: c.text('client_secret_preview').notNull(),
    clientSecretRotatedAt: c.timestampMs('client_secret_rotated_at'),
    apiKeySalt: c.text('api_key_salt').notNull(),
    apiKeyHash: c.text('api_key_hash').notNull(),
    apiKeyPreview: c.text('api_key_preview').notNull(),
    apiKeyRotatedAt: c.timestampMs('api_key_rotated_at'),
    webhookSecret: c.text('webhook_secret').notNull(),
    webhookSecretRotatedAt: c.timestampMs('webhook_secret_rotated_at'),
    credentialsVersion: c.integer('credentials_version').notNull().default(1),
    defaultLocale: c.text('default_locale'),
    webOtpDomain: c.text('web_otp_domain'),
    androidAppHash: c.text('android_app_hash'),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const otpRequests = c.table('otp_requests', {
    id: c.text('id').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    projectId: c.shortId('project_id').notNull(),
    appId: c.shortId('app_id').notNull(),
    environment: c.text('environment').notNull().$type<'live' | 'test'>(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    status: c.text('status').notNull().$type<'pending' | 'verified' | 'failed' | 'expired' | 'canceled'>(),
    failureReason: c.text('failure_reason').$type<'max_attempts' | 'delivery_failed' | 'blocked'>(),
    channel: c.text('channel').notNull(),
    provider: c.text('provider'),
    deliveryStatus: c
      .text('delivery_status')
      .$type<'queued' | 'sent' | 'unknown' | 'delivered' | 'undelivered'>(),
    locale: c.text('locale'),
    clientIp: c.text('client_ip'),
    metadata: c.text('metadata'),
    codeSalt: c.text('code_salt').notNull(),
    codeHash: c.text('code_hash').notNull(),
    attempts: c.integer('attempts').notNull().default(0),
    resends: c.integer('resends').notNull().default(0),
    createdAt: c.timestampMs('created_at').notNull(),
    sentAt: c.timestampMs('sent_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
    verifiedAt: c.timestampMs('verified_at'),
    updatedAt: c.timestampMs('updated_at').notNull(),
  })

  const otpDeliveries = c.table(
    'otp_deliveries',
    {
      requestId: c.text('request_id').notNull(),
      message: c.integer('message').notNull(),
      channels: c.text('channels').notNull(),
      status: c
        .text('status')
        .notNull()
        .$type<'pending' | 'sent' | 'unknown' | 'delivered' | 'undelivered' | 'refused' | 'void'>(),
      provider: c.text('provider'),
      messageId: c.text('message_id'),
      failure: c.text('failure'),
      excluded: c.text('excluded').notNull().default(''),
      attempts: c.integer('attempts').notNull().default(0),
      nextAttemptAt: c.timestampMs('next_attempt_at'),
      leaseOwner: c.text('lease_owner'),
      leaseUntil: c.timestampMs('lease_until'),
      createdAt: c.timestampMs('created_at').notNull(),
      updatedAt: c.timestampMs('updated_at').notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.requestId, t.message] })],
  )

  const providerCircuits = c.table('resting_providers', {
    name: c.text('name').primaryKey(),
    failure: c.text('failure').notNull(),
    openUntil: c.timestampMs('resting_until').notNull(),
  })

  const inboxMessages = c.table('inbox_messages', {
    seq: c.timestampMs('seq').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    requestId: c.text('request_id').notNull(),
    requestVisible: c.integer('request_visible').notNull(),
    sentAt: c.timestampMs('sent_at').notNull(),
  })

  const identities = c.table('identities', {
    id: c.text('id').primaryKey(),
    developerId: c.shortId('developer_id').notNull(),
    phone: c.text('phone').notNull(),
    country: c.text('country'),
    verificationCount: c.integer('verification_count').notNull(),
    firstVerifiedAt: c.timestampMs('first_verified_at').notNull(),
    lastVerifiedAt: c.timestampMs('last_verified_at').notNull(),
  })

  const identityApplications = c.table(
    'identity_applications',
    { identityId: c.text('identity_id').notNull(), appId: c.shortId('app_id').notNull() },
    (t) => [c.primaryKey({ columns: [t.identityId, t.appId] })],
  )

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
    status: c.text('status').notNull().$type<'pending' | 'delivered' | 'failed'>(),
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

  const webhookAttempts = c.table(
    'webhook_attempts',
    {
      deliveryId: c.text('delivery_id').notNull(),
      number: c.integer('number').notNull(),
      at: c.timestampMs('at').notNull(),
      statusCode: c.integer('status_code'),
      error: c.text('error').$type<WebhookError>(),
      durationMs: c.integer('duration_ms').notNull(),
      body: c.text('body'),
    },
    (t) => [c.primaryKey({ columns: [t.deliveryId, t.number] })],
  )

  const rateAdmissions = c.table(
    'rate_admissions',
    {
      subject: c.text('subject').notNull(),
      policy: c.text('policy').notNull(),
      at: c.timestampMs('at').notNull(),
      seq: c.timestampMs('seq').notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.subject, t.policy, t.at, t.seq] })],
  )

  const phoneCheckBudgets = c.table(
    'phone_check_budgets',
    {
      appId: c.text('app_id').notNull(),
      phoneHash: c.text('phone_hash').notNull(),
      refilledAt: c.timestampMs('refilled_at').notNull(),
      consecutiveFailures: c.integer('consecutive_failures').notNull(),
      lockedUntil: c.timestampMs('locked_until'),
    },
    (t) => [c.primaryKey({ columns: [t.appId, t.phoneHash] })],
  )

  const idempotencyKeys = c.table(
    'idempotency_keys',
    {
      caller: c.text('caller').notNull(),
      route: c.text('route').notNull(),
      key: c.text('key').notNull(),
      bodyHash: c.text('body_hash').notNull(),
      answer: c.text('answer'),
      createdAt: c.timestampMs('created_at').notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.caller, t.route, t.key] })],
  )

  const dailyCounts = c.table(
    'daily_counts',
    {
      developerId: c.text('developer_id').notNull(),
      day: c.integer('day').notNull(),
      requests: c.integer('requests').notNull().default(0),
      sent: c.integer('sent').notNull().default(0),
      verified: c.integer('verified').notNull().default(0),
      failed: c.integer('failed').notNull().default(0),
      active: c.integer('active').notNull().default(0),
    },
    (t) => [c.primaryKey({ columns: [t.developerId, t.day] })],
  )

  const guardWindows = c.table(
    'guard_windows',
    {
      subject: c.text('subject').notNull(),
      startsAt: c.timestampMs('starts_at').notNull(),
      unverified: c.integer('unverified').notNull(),
      verified: c.integer('verified').notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.subject, t.startsAt] })],
  )

  const guardAddressCountries = c.table(
    'guard_address_countries',
    {
      subject: c.text('subject').notNull(),
      country: c.text('country').notNull(),
      sentAt: c.timestampMs('sent_at').notNull(),
      verifiedAt: c.timestampMs('verified_at'),
    },
    (t) => [c.primaryKey({ columns: [t.subject, t.country] })],
  )

  const guardDays = c.table(
    'guard_days',
    {
      subject: c.text('subject').notNull(),
      day: c.integer('day').notNull(),
      sent: c.integer('sent').notNull().default(0),
      verified: c.integer('verified').notNull().default(0),
    },
    (t) => [c.primaryKey({ columns: [t.subject, t.day] })],
  )

  const guardDecisions = c.table(
    'guard_decisions',
    {
      hour: c.integer('hour').notNull(),
      rule: c.text('rule').notNull(),
      country: c.text('country').notNull(),
      flagged: c.integer('flagged').notNull(),
      blocked: c.integer('blocked').notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.hour, t.rule, t.country] })],
  )

  return {
    meta,
    counters,
    developers,
    accounts,
    setupTokens,
    refreshTokens,
    signingKeys,
    projects,
    applications,
    otpRequests,
    otpDeliveries,
    providerCircuits,
    inboxMessages,
    identities,
    identityApplications,
    events,
    webhookEndpoints,
    webhookDeliveries,
    webhookAttempts,
    rateAdmissions,
    phoneCheckBudgets,
    idempotencyKeys,
    dailyCounts,
    guardWindows,
    guardAddressCountries,
    guardDays,
    guardDecisions,
    ...defineOperationsTables(c),
  }
}

export type Tables = ReturnType<typeof defineTables>
