import { and, eq, isNull } from 'drizzle-orm'
import type { RefreshTokenStore } from '../domain/store/refresh-tokens.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable, prepareFind } from './engine/on-table.ts'

/** @param onAccessEnded called with the developer's id before a transaction commits that ends sessions */
export function createRefreshTokenStore(
  connection: Connection,
  onAccessEnded: (developerId: string) => void,
): RefreshTokenStore {
  const { database, executor } = connection
  const { refreshTokens: table } = database.tables
  const tokens = onTable(executor, table)
  // Prepared once: anyone may look up tokens at any rate, and SQLite keeps the memory of each statement.
  const find = prepareFind(connection, table, 'hash')
  return {
    find: (hash) => find({ hash }),
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
