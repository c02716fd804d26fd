import type { ColumnKit } from './columns.ts'

/** The tables that serve the operator, as `defineTables` has the others. */
export function defineOperationsTables(c: ColumnKit) {
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

  const retentionCheckpoints = c.table('retention_marks', {
    scan: c.text('walk').primaryKey(),
    checkpoint: c.text('position').notNull(),
  })

  return { auditEntries, retentionCheckpoints }
}
