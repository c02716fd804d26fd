import type { GuardRule } from '../../../domain/model/guard.ts'
import type { ColumnKit } from './columns.ts'

/** Admissions of the rate limits, on PostgreSQL only. */
export const defineAdmissionTable = (c: ColumnKit) =>
  c.table('rate_admissions', {
    subject: c.text('subject').notNull(),
    policy: c.text('policy').notNull(),
    at: c.timestampMs('at').notNull(),
    seq: c.timestampMs('seq').notNull(),
  })

/** Phone budgets, idempotency keys and the guard. */
export const defineLimitsTables = (c: ColumnKit) => ({
  phoneCheckBudgets: c.table('phone_check_budgets', {
    appId: c.text('app_id').notNull(),
    phoneHash: c.text('phone_hash').notNull(),
    refilledAt: c.timestampMs('refilled_at').notNull(),
    consecutiveFailures: c.integer('consecutive_failures').notNull(),
    lockedUntil: c.timestampMs('locked_until'),
  }),

  idempotencyKeys: c.table('idempotency_keys', {
    caller: c.text('caller').notNull(),
    route: c.text('route').notNull(),
    key: c.text('key').notNull(),
    bodyHash: c.text('body_hash').notNull(),
    answer: c.text('answer'),
    createdAt: c.timestampMs('created_at').notNull(),
  }),

  guardUsage: c.table('guard_usage', {
    subject: c.text('subject').primaryKey(),
    windows: c.text('windows').notNull(),
    alertedAt: c.timestampMs('alerted_at').notNull(),
    until: c.integer('until').notNull(),
  }),

  guardDecisions: c.table('guard_decisions', {
    hour: c.integer('hour').notNull(),
    rule: c.text('rule').notNull().$type<GuardRule>(),
    country: c.text('country').notNull(),
    flagged: c.integer('flagged').notNull(),
    blocked: c.integer('blocked').notNull(),
  }),

  guardRules: c.table('guard_rules', {
    developerId: c.text('developer_id').primaryKey(),
    rules: c.text('rules').notNull(),
    version: c.integer('version').notNull(),
    nextExpiryAt: c.timestampMs('next_expiry_at'),
  }),
})
