import { and, eq, gt, lte, notExists, or } from 'drizzle-orm'
import type { SetupTokenStore } from '../domain/store/setup-tokens.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

export function createSetupTokenStore({ database, executor }: Connection): SetupTokenStore {
  const { setupTokens: table, accounts } = database.tables
  const tokens = onTable(executor, table)
  const isUsable = (hash: string, now: number) => {
    const hasNoAccounts = notExists(executor.select({ id: accounts.developerId }).from(accounts))
    return and(eq(table.hash, hash), gt(table.expiresAt, now), or(eq(table.first, 0), hasNoAccounts))
  }
  return {
    isValid: async (hash, now) => (await tokens.find(isUsable(hash, now))) !== undefined,
    insert: (token) => tokens.insert(token),
    use: async (hash, now) => (await tokens.take(isUsable(hash, now))).length === 1,
    deleteFirstStartToken: () => tokens.delete(eq(table.first, 1)),
    deleteExpired: (now) => tokens.delete(lte(table.expiresAt, now)),
  }
}
