import { and, eq, isNull } from 'drizzle-orm'
import type { RefreshTokenStore } from '../domain/store/refresh-tokens.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable } from './engine/on-table.ts'

/** @param onAccessEnded called with the developer's id before a transaction commits that ends sessions */
export function createRefreshTokenStore(
  { database, executor }: Connection,
  onAccessEnded: (developerId: string) => void,
): RefreshTokenStore {
  const { refreshTokens: table } = database.tables
  const tokens = onTable(executor, table)
  return {
    find: (hash) => tokens.find(eq(table.hash, hash)),
    insert: async (token) => void (await tokens.insertMissing(token)),
    use: (hash, now) => tokens.updateOne({ usedAt: now }, and(eq(table.hash, hash), isNull(table.usedAt))),

    async deleteFamily(developerId, family) {
      await tokens.delete(eq(table.family, family))
      onAccessEnded(developerId)
    },

    async deleteByDeveloper(developerId) {
      await tokens.delete(eq(table.developerId, developerId))
      onAccessEnded(developerId)
    },

    deleteExpired: (now, batchSize) =>
      deleteOldestByTime(executor, table.expiresAt, { until: now, batchSize }),
  }
}
