import { and, asc, eq, lte, max, sql } from 'drizzle-orm'
import type { IdempotencyScope, IdempotencyStore } from '../domain/idempotency.ts'
import type { Builders, Database } from './database.ts'

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

    async deleteOldest(until, chunk) {
      const old = on
        .select({ at: keys.createdAt })
        .from(keys)
        .where(lte(keys.createdAt, until))
        .orderBy(asc(keys.createdAt))
        .limit(chunk)
        .as('old')
      const deleted = await on
        .delete(keys)
        .where(lte(keys.createdAt, on.select({ at: max(old.at) }).from(old)))
        .returning({ key: keys.key })
      return deleted.length > 0
    },
  }
}
