import { and, eq, gt, lte, notExists, or } from 'drizzle-orm'
import type { SetupTokenStore } from '../domain/store/setup-tokens.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

export function createSetupTokenStore(database: Database, executor: QueryExecutor): SetupTokenStore {
  const { setupTokens: tokens, accounts } = database.tables
  const isUsable = (hash: string, now: number) => {
    const hasNoAccounts = notExists(executor.select({ id: accounts.developerId }).from(accounts))
    return and(eq(tokens.hash, hash), gt(tokens.expiresAt, now), or(eq(tokens.first, 0), hasNoAccounts))
  }

  return {
    async isValid(hash, now) {
      const rows = await executor.select({ hash: tokens.hash }).from(tokens).where(isUsable(hash, now))
      return rows.length > 0
    },

    async insert(token) {
      await executor.insert(tokens).values(token)
    },

    async use(hash, now) {
      const used = await executor.delete(tokens).where(isUsable(hash, now)).returning({ hash: tokens.hash })
      return used.length === 1
    },

    async deleteFirstStartToken() {
      await executor.delete(tokens).where(eq(tokens.first, 1))
    },

    async deleteExpired(now) {
      await executor.delete(tokens).where(lte(tokens.expiresAt, now))
    },
  }
}
