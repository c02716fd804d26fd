import { eq, gt, sql } from 'drizzle-orm'
import type { GuardStore } from '../domain/store/guard.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { isUnused } from './guard-rows.ts'

/** Creates the queries that bring the guard's rows to a new key. */
export function createGuardKeys(
  database: Database,
  executor: QueryExecutor,
): Pick<GuardStore, 'listKeys' | 'moveKey'> {
  const { guardContexts: contexts, guardCounts: counts } = database.tables
  const larger = (column: typeof contexts.day) =>
    sql`case when excluded.${sql.identifier(column.name)} > ${column} then excluded.${sql.identifier(column.name)} else ${column} end`

  return {
    async listKeys(table, after, limit) {
      const [from, key] = table === 'contexts' ? [contexts, contexts.context] : [counts, counts.subject]
      const rows = await executor.select({ key }).from(from).where(gt(key, after)).orderBy(key).limit(limit)
      return rows.map((row) => row.key)
    },

    async moveKey(table, from, to) {
      if (table === 'contexts') {
        const [row] = await executor.delete(contexts).where(eq(contexts.context, from)).returning()
        if (!row) return
        await executor
          .insert(contexts)
          .values({ ...row, context: to })
          .onConflictDoUpdate({ target: contexts.context, set: { day: larger(contexts.day) } })
        return
      }
      const [row] = await executor.delete(counts).where(eq(counts.subject, from)).returning()
      if (!row || isUnused(row)) return
      await executor
        .insert(counts)
        .values({ ...row, subject: to })
        .onConflictDoUpdate({
          target: counts.subject,
          set: {
            unverified: sql`${counts.unverified} + excluded.unverified`,
            verified: sql`${counts.verified} + excluded.verified`,
            firstAt: sql`excluded.first_at`,
          },
        })
    },
  }
}
