import { and, eq, inArray, sql, type Placeholder } from 'drizzle-orm'
import type { CheckBudgetStore, OldBudgets } from '../domain/store/check-budgets.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { andThen } from '../domain/model/awaitable.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'

/** Reads and deletes the budgets of failed checks that 0.1.0 kept per application and phone hash. */
export function createCheckBudgetStore(database: Database, executor: QueryExecutor): CheckBudgetStore {
  const { phoneCheckBudgets: budgets, applications } = database.tables
  const p = sql.placeholder
  const ownedBy = (developerId: string | Placeholder) =>
    executor
      .select({ id: applications.id })
      .from(applications)
      .where(eq(applications.developerId, developerId))
  const ofPhone = ({ phoneHashes }: OldBudgets) => ({ first: phoneHashes[0], last: phoneHashes.at(-1) })
  const list = database.prepare(() =>
    executor
      .select({
        refilledAt: budgets.refilledAt,
        consecutiveFailures: budgets.consecutiveFailures,
        lockedUntil: budgets.lockedUntil,
      })
      .from(budgets)
      .where(
        and(
          sql`${budgets.phoneHash} in (${p('first')}, ${p('last')})`,
          inArray(budgets.appId, ownedBy(p('developerId'))),
        ),
      ),
  )

  const findAny = database.prepare(() => executor.select({ appId: budgets.appId }).from(budgets).limit(1))

  return {
    list: (old) => list({ ...ofPhone(old), developerId: old.developerId }),

    async delete({ developerId, phoneHashes }) {
      const owned = ownedBy(developerId)
      const deleted = await executor
        .delete(budgets)
        .where(and(inArray(budgets.appId, owned), inArray(budgets.phoneHash, [...phoneHashes])))
        .returning({ phoneHash: budgets.phoneHash })
      return deleted.length
    },

    isEmpty: () => andThen(findAny(), (found) => found.length === 0),

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
