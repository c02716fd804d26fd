import { and, eq, isNull } from 'drizzle-orm'
import type { RefreshTokenStore } from '../domain/accounts/refresh-tokens.ts'
import type { Builders, Database } from './engine/database.ts'
import { deleteOldest } from './engine/delete-oldest.ts'

export function createRefreshTokenStore(database: Database, on: Builders): RefreshTokenStore {
  const { refreshTokens: tokens } = database.tables

  return {
    async find(hash) {
      const [token] = await on.select().from(tokens).where(eq(tokens.hash, hash))
      return token
    },

    async insert(token) {
      await on.insert(tokens).values(token).onConflictDoNothing()
    },

    async use(hash, now) {
      const used = await on
        .update(tokens)
        .set({ usedAt: now })
        .where(and(eq(tokens.hash, hash), isNull(tokens.usedAt)))
        .returning({ hash: tokens.hash })
      return used.length === 1
    },

    async deleteFamily(family) {
      await on.delete(tokens).where(eq(tokens.family, family))
    },

    async deleteOfDeveloper(developerId) {
      await on.delete(tokens).where(eq(tokens.developerId, developerId))
    },

    deleteExpired: (now, chunk) => deleteOldest(on, tokens, tokens.expiresAt, now, chunk),
  }
}
