import { desc, gt, isNull, lte, or } from 'drizzle-orm'
import type { SigningKeyStore } from '../domain/store/signing-keys.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

export function createSigningKeyStore({ database, executor }: Connection): SigningKeyStore {
  const { signingKeys: table } = database.tables
  const keys = onTable(executor, table)
  const newestFirst = [desc(table.createdAt), desc(table.kid)]
  return {
    current: () => keys.find(isNull(table.retiredAt), ...newestFirst),
    published: (retiredAfter) =>
      keys.list(or(isNull(table.retiredAt), gt(table.retiredAt, retiredAfter)), ...newestFirst),
    // PostgreSQL has a unique index of current keys.
    insert: (key) => keys.insertMissing(key),
    retireAll: (now) => keys.update({ retiredAt: now }, isNull(table.retiredAt)),
    deleteRetiredBefore: (time) => keys.delete(lte(table.retiredAt, time)),
  }
}
