import { and, eq, inArray, sql, type Placeholder } from 'drizzle-orm'
import type { CheckBudgetStore, OldBudgets } from '../domain/store/check-budgets.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByTime } from './engine/delete-oldest.ts'
import { onTable } from './engine/on-table.ts'

/** Reads and deletes the budgets of failed checks that 0.1.0 kept per application and phone hash. */
export function createCheckBudgetStore(connection: Connection): CheckBudgetStore {
  const { database, executor } = connection
  const { phoneCheckBudgets: budgets } = database.tables
  const rows = onTable(executor, budgets)
  const list = database.prepare(() => selectOldBudgets(connection))

  return {
    list: (old) => list(toBudgetValues(old)),

    async delete({ developerId, phoneHashes }) {
      const isOwned = inArray(budgets.appId, selectOwned(connection, developerId))
      return (await rows.take(and(isOwned, inArray(budgets.phoneHash, [...phoneHashes])))).length
    },

    deleteByPhone: (phoneHashes) => rows.delete(inArray(budgets.phoneHash, [...phoneHashes])),

    deleteByApplication: async (appId) => (await rows.take(eq(budgets.appId, appId))).length,

    deleteOldest: (until, batchSize) =>
      deleteOldestByTime(executor, budgets.refilledAt, { until, batchSize }),
  }
}

/** Selects the budgets of the phone that `toBudgetValues` names. */
export function selectOldBudgets(connection: Connection) {
  const { database, executor } = connection
  const { phoneHash, appId, refilledAt, consecutiveFailures, lockedUntil } = database.tables.phoneCheckBudgets
  const p = sql.placeholder
  return executor
    .select({ refilledAt, consecutiveFailures, lockedUntil })
    .from(database.tables.phoneCheckBudgets)
    .where(
      and(
        sql`${phoneHash} in (${p('first')}, ${p('last')})`,
        inArray(appId, selectOwned(connection, p('developerId'))),
      ),
    )
}

export const toBudgetValues = ({ developerId, phoneHashes }: OldBudgets) => ({
  developerId,
  first: phoneHashes[0],
  last: phoneHashes.at(-1),
})

/** Selects a budget, if there is one. */
export const selectAnyBudget = ({ database, executor }: Connection) =>
  executor.select().from(database.tables.phoneCheckBudgets).limit(1)

function selectOwned({ database, executor }: Connection, developerId: string | Placeholder) {
  const { applications: table } = database.tables
  return executor.select({ id: table.id }).from(table).where(eq(table.developerId, developerId))
}
