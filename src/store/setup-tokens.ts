import { and, eq, gt, lte, notExists, or } from 'drizzle-orm'
import type { SetupTokenStore } from '../domain/accounts/setup-tokens.ts'
import type { Builders, Database } from './engine/database.ts'

export function createSetupTokenStore(database: Database, on: Builders): SetupTokenStore {
  const { setupTokens: tokens, accounts } = database.tables
  const valid = (hash: string, now: number) => {
    const nobody = notExists(on.select({ id: accounts.developerId }).from(accounts))
    return and(eq(tokens.hash, hash), gt(tokens.expiresAt, now), or(eq(tokens.first, 0), nobody))
  }

  return {
    async isValid(hash, now) {
      const found = await on.select({ hash: tokens.hash }).from(tokens).where(valid(hash, now))
      return found.length > 0
    },

    async insert(token) {
      await on.insert(tokens).values(token)
    },

    async use(hash, now) {
      const used = await on.delete(tokens).where(valid(hash, now)).returning({ hash: tokens.hash })
      return used.length === 1
    },

    async deleteFirst() {
      await on.delete(tokens).where(eq(tokens.first, 1))
    },

    async deleteExpired(now) {
      await on.delete(tokens).where(lte(tokens.expiresAt, now))
    },
  }
}
