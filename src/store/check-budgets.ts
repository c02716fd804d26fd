import { and, eq, inArray, sql } from 'drizzle-orm'
import type { CheckBudgetStore } from '../domain/store/check-budgets.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { andThen } from '../domain/model/awaitable.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'

/** Reads and deletes the budgets of failed checks that 0.1.0 kept per application and phone hash. */
export function createCheckBudgetStore(database: Database, executor: QueryExecutor): CheckBudgetStore {
  const { phoneCheckBudgets: budgets, applications } = database.tables
  const p = sql.placeholder
  // Prepared because it runs for every new phone, and almost always finds nothing: applications are looked up after it.
  const find = database.prepare(() =>
    executor
      .select({
        appId: budgets.appId,
        refilledAt: budgets.refilledAt,
        consecutiveFailures: budgets.consecutiveFailures,
        lockedUntil: budgets.lockedUntil,
      })
      .from(budgets)
      .where(sql`${budgets.phoneHash} in (${p('first')}, ${p('last')})`),
  )

  const findAny = database.prepare(() => executor.select({ appId: budgets.appId }).from(budgets).limit(1))

  return {
    async take(developerId, phoneHashes) {
      const found = await find({ first: phoneHashes[0], last: phoneHashes.at(-1) })
      if (found.length === 0) return []
      const appIds = found.map(({ appId }) => appId)
      const owned = await executor
        .select({ id: applications.id })
        .from(applications)
        .where(and(eq(applications.developerId, developerId), inArray(applications.id, appIds)))
      const ownedIds = owned.map(({ id }) => id)
      if (ownedIds.length > 0) {
        await executor
          .delete(budgets)
          .where(and(inArray(budgets.appId, ownedIds), inArray(budgets.phoneHash, [...phoneHashes])))
      }
      return found.filter(({ appId }) => ownedIds.includes(appId))
    },

    isEmpty: () => andThen(findAny(), (found) => found.length === 0),

    exists: (phoneHashes) =>
      andThen(find({ first: phoneHashes[0], last: phoneHashes.at(-1) }), (found) => found.length > 0),

    async deleteByPhone(phoneHashes) {
      await executor.delete(budgets).where(inArray(budgets.phoneHash, [...phoneHashes]))
    },

    async deleteByApplication(appId) {
      const deleted = await executor
        .delete(budgets)
        .where(eq(budgets.appId, appId))
        .returning({ phoneHash: budgets.phoneHash })
      return deleted.length
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByTime(executor, budgets, budgets.refilledAt, until, batchSize),
  }
}
