import { eq } from 'drizzle-orm'
import type { AccountStore } from '../domain/store/accounts.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

export function createAccountStore(database: Database, executor: QueryExecutor): AccountStore {
  const { accounts } = database.tables

  return {
    async hasAny() {
      const rows = await executor.select({ id: accounts.developerId }).from(accounts).limit(1)
      return rows.length > 0
    },

    async find(developerId) {
      const [account] = await executor.select().from(accounts).where(eq(accounts.developerId, developerId))
      return account
    },

    async findByEmail(email) {
      const [account] = await executor.select().from(accounts).where(eq(accounts.email, email))
      return account
    },

    async insert(account) {
      const inserted = await executor
        .insert(accounts)
        .values(account)
        .onConflictDoNothing()
        .returning({ id: accounts.developerId })
      return inserted.length === 1
    },

    async updatePassword(developerId, passwordHash, now) {
      await executor
        .update(accounts)
        .set({ passwordHash, updatedAt: now })
        .where(eq(accounts.developerId, developerId))
    },

    async delete(developerId) {
      await executor.delete(accounts).where(eq(accounts.developerId, developerId))
    },
  }
}
