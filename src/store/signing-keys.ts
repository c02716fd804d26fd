import { desc, gt, isNull, lte, or } from 'drizzle-orm'
import type { SigningKeyStore } from '../domain/accounts/signing-keys.ts'
import type { Builders, Database } from './engine/database.ts'

export function createSigningKeyStore(database: Database, on: Builders): SigningKeyStore {
  const { signingKeys: keys } = database.tables

  return {
    async current() {
      const [key] = await on
        .select()
        .from(keys)
        .where(isNull(keys.retiredAt))
        .orderBy(desc(keys.createdAt), desc(keys.kid))
        .limit(1)
      return key
    },

    published: async (retiredAfter) =>
      on
        .select()
        .from(keys)
        .where(or(isNull(keys.retiredAt), gt(keys.retiredAt, retiredAfter)))
        .orderBy(desc(keys.createdAt), desc(keys.kid)),

    async insert(key) {
      await on.insert(keys).values(key)
    },

    async retireAll(now) {
      await on.update(keys).set({ retiredAt: now }).where(isNull(keys.retiredAt))
    },

    async deleteRetiredBefore(time) {
      await on.delete(keys).where(lte(keys.retiredAt, time))
    },
  }
}
