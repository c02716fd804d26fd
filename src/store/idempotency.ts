import { and, eq, lte, sql } from 'drizzle-orm'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { Sealing } from './engine/sealing.ts'
import type { IdempotencyStore } from '../domain/store/idempotency.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'

/** Stores idempotency keys with the results of their requests. */
export function createIdempotencyStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): IdempotencyStore {
  const { idempotencyKeys: keys } = database.tables
  const matchesScope = (scope: IdempotencyScope) =>
    and(eq(keys.caller, scope.caller), eq(keys.route, scope.route), eq(keys.key, scope.key))

  return {
    async claim(scope, now, expiredBefore) {
      const claimed = await executor
        .insert(keys)
        .values({
          caller: scope.caller,
          route: scope.route,
          key: scope.key,
          bodyHash: scope.bodyHash,
          createdAt: now,
        })
        .onConflictDoUpdate({
          target: [keys.caller, keys.route, keys.key],
          set: { bodyHash: scope.bodyHash, answer: sql`null`, createdAt: now },
          setWhere: lte(keys.createdAt, expiredBefore),
        })
        .returning({ key: keys.key })
      if (claimed.length > 0) return undefined
      const [existing] = await executor
        .select({ bodyHash: keys.bodyHash, answer: keys.answer })
        .from(keys)
        .where(matchesScope(scope))
      if (!existing || existing.answer === null) return existing
      const answer = sealing.openText('idempotency_keys.answer', idempotencyRow(scope), existing.answer)
      if (answer === null) throw new Error('the stored result of an idempotent call cannot be decrypted')
      return { ...existing, answer }
    },

    async finish(scope, result) {
      const answer = sealing.sealText('idempotency_keys.answer', idempotencyRow(scope), result)
      await executor.update(keys).set({ answer }).where(matchesScope(scope))
    },

    async release(scope) {
      await executor.delete(keys).where(matchesScope(scope))
    },

    deleteOldest: (until, batchSize) => deleteOldestByTime(executor, keys, keys.createdAt, until, batchSize),
  }
}

/** Names a row in the associated data of its sealed result. None of the three contains a line break. */
export const idempotencyRow = ({ caller, route, key }: Pick<IdempotencyScope, 'caller' | 'route' | 'key'>) =>
  `${caller}\n${route}\n${key}`
