import { and, eq, sql } from 'drizzle-orm'
import type { CheckBudgetStore } from '../domain/store/phone-budgets.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'

/** Stores the budgets of failed checks, per application and phone hash. */
export function createCheckBudgetStore(database: Database, executor: QueryExecutor): CheckBudgetStore {
  const { phoneCheckBudgets: budgets } = database.tables
  const find = database.prepare(() =>
    executor
      .select({
        refilledAt: budgets.refilledAt,
        consecutiveFailures: budgets.consecutiveFailures,
        lockedUntil: budgets.lockedUntil,
      })
      .from(budgets)
      .where(
        and(eq(budgets.appId, sql.placeholder('appId')), eq(budgets.phoneHash, sql.placeholder('phoneHash'))),
      ),
  )

  return {
    async find(appId, phoneHash) {
      const [budget] = await find({ appId, phoneHash })
      return budget
    },

    async put(appId, phoneHash, budget) {
      await executor
        .insert(budgets)
        .values({ appId, phoneHash, ...budget })
        .onConflictDoUpdate({ target: [budgets.appId, budgets.phoneHash], set: budget })
    },

    async deleteByPhone(phoneHash) {
      const deleted = await executor
        .delete(budgets)
        .where(eq(budgets.phoneHash, phoneHash))
        .returning({ appId: budgets.appId })
      return deleted.map(({ appId }) => appId)
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
