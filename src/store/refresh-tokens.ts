import { and, eq, isNull } from 'drizzle-orm'
import type { RefreshTokenStore } from '../domain/store/refresh-tokens.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'

/** @param onAccessEnded called with the developer's id before a transaction commits that ends sessions */
export function createRefreshTokenStore(
  database: Database,
  executor: QueryExecutor,
  onAccessEnded: (developerId: string) => void,
): RefreshTokenStore {
  const { refreshTokens: tokens } = database.tables

  return {
    async find(hash) {
      const [token] = await executor.select().from(tokens).where(eq(tokens.hash, hash))
      return token
    },

    async insert(token) {
      await executor.insert(tokens).values(token).onConflictDoNothing()
    },

    async use(hash, now) {
      const used = await executor
        .update(tokens)
        .set({ usedAt: now })
        .where(and(eq(tokens.hash, hash), isNull(tokens.usedAt)))
        .returning({ hash: tokens.hash })
      return used.length === 1
    },

    async deleteFamily(developerId, family) {
      await executor.delete(tokens).where(eq(tokens.family, family))
      onAccessEnded(developerId)
    },

    async deleteByDeveloper(developerId) {
      await executor.delete(tokens).where(eq(tokens.developerId, developerId))
      onAccessEnded(developerId)
    },

    deleteExpired: (now, batchSize) => deleteOldestByTime(executor, tokens, tokens.expiresAt, now, batchSize),
  }
}
