import { and, eq, sql } from 'drizzle-orm'
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
        .set({ passwordHash, failedLogins: 0, updatedAt: now })
        .where(eq(accounts.developerId, developerId))
    },

    async rehash(developerId, oldHash, newHash) {
      await executor
        .update(accounts)
        .set({ passwordHash: newHash })
        .where(and(eq(accounts.developerId, developerId), eq(accounts.passwordHash, oldHash)))
    },

    async addFailedLogins(developerId, change) {
      const changed = sql`${accounts.failedLogins} + ${sql.raw(String(change))}`
      const [account] = await executor
        .update(accounts)
        .set({ failedLogins: sql`case when ${changed} < 0 then 0 else ${changed} end` })
        .where(eq(accounts.developerId, developerId))
        .returning({ failedLogins: accounts.failedLogins })
      return account?.failedLogins ?? 0
    },

    async resetFailedLogins(developerId) {
      await executor.update(accounts).set({ failedLogins: 0 }).where(eq(accounts.developerId, developerId))
    },

    async delete(developerId) {
      await executor.delete(accounts).where(eq(accounts.developerId, developerId))
    },
  }
}
