import type { ColumnKit } from './columns.ts'

/** Developers, their accounts and sessions, and the audit log. */
export function defineAccountsTables(c: ColumnKit) {
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

  const auditEntries = c.table('audit_entries', {
    id: c.text('id').primaryKey(),
    developerId: c.text('developer_id'),
    action: c.text('action').notNull(),
    actorId: c.text('actor_id'),
    targetId: c.text('target_id'),
    targetName: c.text('target_name'),
    detail: c.text('detail'),
    source: c.text('source').notNull().$type<'api' | 'host' | 'server'>(),
    ip: c.text('ip'),
    userAgent: c.text('user_agent'),
    traceId: c.text('trace_id'),
    at: c.timestampMs('at').notNull(),
  })

  return { developers, accounts, setupTokens, refreshTokens, signingKeys, auditEntries }
}
