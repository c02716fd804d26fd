import { and, desc, eq, getTableColumns, gte, lt } from 'drizzle-orm'
import type { AuditQuery, AuditStore } from '../domain/store/audit.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import type { AuditChains } from './audit-chains.ts'

export function createAuditStore({ database, executor }: Connection, chains: AuditChains): AuditStore {
  const { auditEntries: entries } = database.tables
  // Without the place of an entry in its chain.
  const { position: _position, hash: _hash, witness: _witness, ...columns } = getTableColumns(entries)
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
      chains.add(entry)
    },

    list: (developerId, query) => list({ developerId, ...query }),

    deleteOldest: chains.deleteOldest,
  }
}
