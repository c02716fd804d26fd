import { desc, gt, isNull, lte, or } from 'drizzle-orm'
import type { SigningKeyStore } from '../domain/store/signing-keys.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

export function createSigningKeyStore(database: Database, executor: QueryExecutor): SigningKeyStore {
  const { signingKeys: keys } = database.tables

  return {
    async current() {
      const [key] = await executor
        .select()
        .from(keys)
        .where(isNull(keys.retiredAt))
        .orderBy(desc(keys.createdAt), desc(keys.kid))
        .limit(1)
      return key
    },

    published: async (retiredAfter) =>
      executor
        .select()
        .from(keys)
        .where(or(isNull(keys.retiredAt), gt(keys.retiredAt, retiredAfter)))
        .orderBy(desc(keys.createdAt), desc(keys.kid)),

    async insert(key) {
      // PostgreSQL has a unique index of current keys.
      const inserted = await executor
        .insert(keys)
        .values(key)
        .onConflictDoNothing()
        .returning({ kid: keys.kid })
      return inserted.length === 1
    },

    async retireAll(now) {
      await executor.update(keys).set({ retiredAt: now }).where(isNull(keys.retiredAt))
    },

    async deleteRetiredBefore(time) {
      await executor.delete(keys).where(lte(keys.retiredAt, time))
    },
  }
}
