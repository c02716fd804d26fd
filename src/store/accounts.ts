import { and, eq, sql } from 'drizzle-orm'
import type { AccountStore } from '../domain/store/accounts.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

export function createAccountStore({ database, executor }: Connection): AccountStore {
  const { accounts: table } = database.tables
  const accounts = onTable(executor, table)
  const isOwn = (developerId: string) => eq(table.developerId, developerId)
  return {
    hasAny: async () => (await accounts.find()) !== undefined,
    find: (developerId) => accounts.find(isOwn(developerId)),
    findByEmail: (email) => accounts.find(eq(table.email, email)),
    insert: (account) => accounts.insertMissing(account),

    updatePassword: (developerId, passwordHash, now) =>
      accounts.update({ passwordHash, failedLogins: 0, updatedAt: now }, isOwn(developerId)),

    rehash: (developerId, oldHash, newHash) =>
      accounts.update({ passwordHash: newHash }, and(isOwn(developerId), eq(table.passwordHash, oldHash))),

    async addFailedLogins(developerId, change) {
      const changed = sql`${table.failedLogins} + ${sql.raw(String(change))}`
      const failedLogins = sql`case when ${changed} < 0 then 0 else ${changed} end`
      const [account] = await accounts.change({ failedLogins }, isOwn(developerId))
      return account?.failedLogins ?? 0
    },

    resetFailedLogins: (developerId) => accounts.updateOne({ failedLogins: 0 }, isOwn(developerId)),
    delete: (developerId) => accounts.delete(isOwn(developerId)),
  }
}
