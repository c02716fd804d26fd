import { and, eq, gt, lte, notExists, or } from 'drizzle-orm'
import type { SetupTokenStore } from '../domain/store/setup-tokens.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFind } from './engine/on-table.ts'

export function createSetupTokenStore(connection: Connection): SetupTokenStore {
  const { database, executor } = connection
  const { setupTokens: table, accounts } = database.tables
  const tokens = onTable(executor, table)
  // Prepared once: anyone may look up tokens at any rate, and SQLite keeps the memory of each statement.
  const find = prepareFind(connection, table, 'hash')
  const isUsable = (hash: string, now: number) => {
    const hasNoAccounts = notExists(executor.select({ id: accounts.developerId }).from(accounts))
    return and(eq(table.hash, hash), gt(table.expiresAt, now), or(eq(table.first, 0), hasNoAccounts))
  }
  return {
    isValid: async (hash, now) =>
      (await find({ hash })) !== undefined && (await tokens.find(isUsable(hash, now))) !== undefined,
    insert: (token) => tokens.insert(token),
    use: async (hash, now) => (await tokens.take(isUsable(hash, now))).length === 1,
    deleteFirstStartToken: () => tokens.delete(eq(table.first, 1)),
    deleteExpired: (now) => tokens.delete(lte(table.expiresAt, now)),
  }
}
