import { eq } from 'drizzle-orm'
import type { AccountStore } from '../domain/accounts/accounts.ts'
import type { Builders, Database } from './engine/database.ts'

export function createAccountStore(database: Database, on: Builders): AccountStore {
  const { accounts } = database.tables

  return {
    async any() {
      const found = await on.select({ id: accounts.developerId }).from(accounts).limit(1)
      return found.length > 0
    },

    async find(developerId) {
      const [account] = await on.select().from(accounts).where(eq(accounts.developerId, developerId))
      return account
    },

    async findByEmail(email) {
      const [account] = await on.select().from(accounts).where(eq(accounts.email, email))
      return account
    },

    async insert(account) {
      const inserted = await on
        .insert(accounts)
        .values(account)
        .onConflictDoNothing()
        .returning({ id: accounts.developerId })
      return inserted.length === 1
    },

    async updatePassword(developerId, passwordHash, now) {
      await on
        .update(accounts)
        .set({ passwordHash, updatedAt: now })
        .where(eq(accounts.developerId, developerId))
    },

    async delete(developerId) {
      await on.delete(accounts).where(eq(accounts.developerId, developerId))
    },
  }
}
