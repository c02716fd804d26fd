import type { AuditAction } from '../../../domain/model/audit.ts'
import type { ColumnKit } from './columns.ts'

/** Developers, their accounts and sessions, and the audit log. */
export const defineAccountsTables = (c: ColumnKit) => ({
  developers: c.table('developers', {
    id: c.text('id').primaryKey(),
    issuer: c.text('issuer'),
    subject: c.text('subject'),
    email: c.text('email'),
    name: c.text('name'),
    company: c.text('company'),
    plan: c.text('plan').notNull(),
    virtualPhone: c.text('virtual_phone').notNull(),
    status: c.text('status').notNull().$type<'active' | 'disabled'>(),
    tokensValidFrom: c.timestampMs('tokens_valid_from').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),

  accounts: c.table('accounts', {
    developerId: c.text('developer_id').primaryKey(),
    email: c.text('email').notNull(),
    passwordHash: c.text('password_hash').notNull(),
    failedLogins: c.integer('failed_logins').notNull().default(0),
    createdAt: c.timestampMs('created_at').notNull(),
    updatedAt: c.timestampMs('updated_at').notNull(),
  }),

  loginFailures: c.table('login_failures', {
    network: c.text('network').notNull(),
    account: c.text('account').notNull(),
    seq: c.timestampMs('seq').notNull(),
    at: c.timestampMs('at').notNull(),
  }),

  loginCounters: c.table('login_counters', {
    subject: c.text('subject').primaryKey(),
    failures: c.integer('failures').notNull(),
    at: c.timestampMs('at').notNull(),
  }),

  loginNetworks: c.table('login_networks', {
    developerId: c.text('developer_id').notNull(),
    network: c.text('network').notNull(),
    at: c.timestampMs('at').notNull(),
  }),

  totpSecrets: c.table('totp_secrets', {
    developerId: c.text('developer_id').primaryKey(),
    secret: c.text('secret').notNull(),
    lastStep: c.timestampMs('last_step').notNull().default(0),
    createdAt: c.timestampMs('created_at').notNull(),
    confirmedAt: c.timestampMs('confirmed_at'),
  }),

  recoveryCodes: c.table('recovery_codes', {
    developerId: c.text('developer_id').notNull(),
    hash: c.text('hash').notNull(),
  }),

  setupTokens: c.table('setup_tokens', {
    hash: c.text('hash').primaryKey(),
    first: c.integer('first').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
  }),

  refreshTokens: c.table('refresh_tokens', {
    hash: c.text('hash').primaryKey(),
    family: c.text('family').notNull(),
    developerId: c.text('developer_id').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at').notNull(),
    usedAt: c.timestampMs('used_at'),
    sessionEndsAt: c.timestampMs('session_ends_at').notNull(),
  }),

  apiTokens: c.table('api_tokens', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id').notNull(),
    name: c.text('name').notNull(),
    scopes: c.text('scopes').notNull(),
    preview: c.text('preview').notNull(),
    salt: c.text('salt').notNull(),
    hash: c.text('hash').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    expiresAt: c.timestampMs('expires_at'),
    lastUsedAt: c.timestampMs('last_used_at'),
  }),

  signingKeys: c.table('signing_keys', {
    kid: c.text('kid').primaryKey(),
    publicJwk: c.text('public_jwk').notNull(),
    privateKey: c.text('private_key').notNull(),
    createdAt: c.timestampMs('created_at').notNull(),
    retiredAt: c.timestampMs('retired_at'),
  }),

  auditEntries: c.table('audit_entries', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id'),
    action: c.text('action').notNull().$type<AuditAction>(),
    actorId: c.text('actor_id'),
    targetId: c.text('target_id'),
    targetName: c.text('target_name'),
    detail: c.text('detail'),
    source: c.text('source').notNull().$type<'api' | 'host' | 'server'>(),
    ip: c.text('ip'),
    userAgent: c.text('user_agent'),
    traceId: c.text('trace_id'),
    tokenId: c.text('token_id'),
    at: c.timestampMs('at').notNull(),
    position: c.integer('position').notNull(),
    hash: c.text('hash').notNull(),
    witness: c.text('witness'),
  }),

  auditChains: c.table('audit_chains', {
    chain: c.text('chain').primaryKey(),
    entries: c.integer('entries').notNull(),
    lastHash: c.text('last_hash').notNull(),
    deleted: c.integer('deleted').notNull(),
    deletedHash: c.text('deleted_hash').notNull(),
    chains: c.integer('chains').notNull(),
    startedAt: c.timestampMs('started_at').notNull(),
    keyVersion: c.integer('key_version').notNull(),
    mac: c.text('mac').notNull(),
  }),
})
