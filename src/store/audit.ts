import { and, desc, eq, gte, lt, sql } from 'drizzle-orm'
import type { AuditAction } from '../domain/model/audit.ts'
import type { AuditQuery, AuditStore } from '../domain/store/audit.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'

export function createAuditStore(database: Database, executor: QueryExecutor): AuditStore {
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
    tokenId: entries.tokenId,
    at: entries.at,
  }
  type ListFilter = { developerId: string | undefined } & AuditQuery
  const list = prepareFiltered(
    database,
    ({ developerId, action, targetId, limit, before, from }: FilterPlaceholders<ListFilter>) =>
      executor
        .select(columns)
        .from(entries)
        .where(
          and(
            developerId && eq(entries.developerId, developerId),
            action && eq(entries.action, action),
            targetId && eq(entries.targetId, targetId),
            before && lt(entries.id, before),
            from && gte(entries.id, from),
          ),
        )
        .orderBy(orderByLimit(desc(entries.id), limit)),
  )

  return {
    async insert(entry) {
      await executor.insert(entries).values(entry)
    },

    async delete(id) {
      await executor.delete(entries).where(eq(entries.id, id))
    },

    list: (developerId, query) => list({ developerId, ...query }),

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, entries, entries.id, entries.at, until, batchSize),
  }
}
