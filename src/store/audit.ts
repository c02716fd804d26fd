import { and, desc, eq, lt, sql } from 'drizzle-orm'
import type { AuditAction, AuditStore } from '../domain/audit.ts'
import type { Builders, Database } from './database.ts'
import { deleteOldestInOrder } from './delete-oldest.ts'

export function createAuditStore(database: Database, on: Builders): AuditStore {
  const { auditEntries: entries } = database.tables
  const columns = {
    id: entries.id,
    developerId: entries.developerId,
    // Written by insert below from an AuditAction.
    action: sql<AuditAction>`${entries.action}`,
    actorId: entries.actorId,
    targetId: entries.targetId,
    targetName: entries.targetName,
    detail: entries.detail,
    source: entries.source,
    ip: entries.ip,
    userAgent: entries.userAgent,
    traceId: entries.traceId,
    at: entries.at,
  }

  return {
    async insert(entry) {
      await on.insert(entries).values(entry)
    },

    async delete(id) {
      await on.delete(entries).where(eq(entries.id, id))
    },

    list: async (developerId, { action, targetId, limit, before }) =>
      on
        .select(columns)
        .from(entries)
        .where(
          and(
            developerId === undefined ? undefined : eq(entries.developerId, developerId),
            action === undefined ? undefined : eq(entries.action, action),
            targetId === undefined ? undefined : eq(entries.targetId, targetId),
            before === undefined ? undefined : lt(entries.id, before),
          ),
        )
        .orderBy(desc(entries.id))
        .limit(limit),

    deleteOldest: (until, chunk) => deleteOldestInOrder(on, entries, entries.id, entries.at, until, chunk),
  }
}
