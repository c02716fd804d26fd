import { and, eq, lte, sql } from 'drizzle-orm'
import type { IdempotencyScope, IdempotencyStore } from '../domain/limits/idempotency.ts'
import type { Builders, Database } from './engine/database.ts'
import { deleteOldest } from './engine/delete-oldest.ts'

export function createIdempotencyStore(database: Database, on: Builders): IdempotencyStore {
  const { idempotencyKeys: keys } = database.tables
  const same = (scope: IdempotencyScope) =>
    and(eq(keys.caller, scope.caller), eq(keys.route, scope.route), eq(keys.key, scope.key))

  return {
    async claim(scope, now, expiredBefore) {
      const taken = await on
        .insert(keys)
        .values({ ...scope, createdAt: now })
        .onConflictDoUpdate({
          target: [keys.caller, keys.route, keys.key],
          set: { bodyHash: scope.bodyHash, answer: sql`null`, createdAt: now },
          setWhere: lte(keys.createdAt, expiredBefore),
        })
        .returning({ key: keys.key })
      if (taken.length > 0) return undefined
      const [earlier] = await on
        .select({ bodyHash: keys.bodyHash, answer: keys.answer })
        .from(keys)
        .where(same(scope))
      return earlier
    },

    async finish(scope, answer) {
      await on.update(keys).set({ answer }).where(same(scope))
    },

    deleteOldest: (until, chunk) => deleteOldest(on, keys, keys.createdAt, until, chunk),
  }
}
