import { and, eq, inArray, sql, type Placeholder } from 'drizzle-orm'
import type { CheckBudgetStore, OldBudgets } from '../domain/store/check-budgets.ts'
import type { Connection } from './engine/connection.ts'
import { andThen } from '../domain/model/awaitable.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable } from './engine/on-table.ts'

/** Reads and deletes the budgets of failed checks that 0.1.0 kept per application and phone hash. */
export function createCheckBudgetStore({ database, executor }: Connection): CheckBudgetStore {
  const { phoneCheckBudgets: budgets, applications } = database.tables
  const rows = onTable(executor, budgets)
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
      const isOwned = inArray(budgets.appId, ownedBy(developerId))
      return (await rows.take(and(isOwned, inArray(budgets.phoneHash, [...phoneHashes])))).length
    },

    isEmpty: () => andThen(findAny(), (found) => found.length === 0),

    deleteByPhone: (phoneHashes) => rows.delete(inArray(budgets.phoneHash, [...phoneHashes])),

    deleteByApplication: async (appId) => (await rows.take(eq(budgets.appId, appId))).length,

    deleteOldest: (until, batchSize) =>
      deleteOldestByTime(executor, budgets.refilledAt, { until, batchSize }),
  }
}
