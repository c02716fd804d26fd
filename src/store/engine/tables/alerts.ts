import type { AlertEvent, AlertKind, AlertNotice, AlertSeverity } from '../../../domain/model/alert.ts'
import type { ColumnKit } from './columns.ts'

/** Alerts to the operator, and their notices. */
export const defineAlertsTables = (c: ColumnKit) => ({
  alerts: c.table('alerts', {
    kind: c.text('kind').notNull().$type<AlertKind>(),
    subject: c.text('subject').notNull(),
    severity: c.text('severity').notNull().$type<AlertSeverity>(),
    message: c.text('message').notNull(),
    remedy: c.text('remedy').notNull(),
    source: c.text('source').notNull(),
    since: c.timestampMs('since').notNull(),
    firedAt: c.timestampMs('fired_at'),
    notifiedAt: c.timestampMs('notified_at'),
    clearedAt: c.timestampMs('cleared_at'),
  }),

  alertNotices: c.table('alert_notices', {
    destination: c.text('destination').notNull(),
    kind: c.text('kind').notNull().$type<AlertNotice['kind']>(),
    subject: c.text('subject').notNull(),
    at: c.timestampMs('at').notNull(),
    event: c.text('event').notNull().$type<AlertEvent>(),
    severity: c.text('severity').notNull().$type<AlertSeverity>(),
    message: c.text('message').notNull(),
    remedy: c.text('remedy').notNull(),
    since: c.timestampMs('since').notNull(),
    dueAt: c.timestampMs('due_at').notNull(),
    attempts: c.integer('attempts').notNull(),
    failure: c.text('failure'),
  }),
})
