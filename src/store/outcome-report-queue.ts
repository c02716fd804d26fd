import { and, asc, eq, inArray, isNotNull, lte, min } from 'drizzle-orm'
import type { OutcomeReportQueue } from '../domain/store/outcome-report-queue.ts'
import type { Database, QueryExecutor } from './engine/database.ts'

/** Stores when providers hear how the requests of their messages ended: a column of the outbox of messages. */
export function createOutcomeReportQueue(database: Database, executor: QueryExecutor): OutcomeReportQueue {
  const { otpDeliveries: messages } = database.tables
  const key = { requestId: messages.requestId, message: messages.message }

  const findNextDue = database.prepare(() =>
    executor
      .select({ at: min(messages.reportDueAt) })
      .from(messages)
      .where(isNotNull(messages.reportDueAt)),
  )

  return {
    async claim({ now, leaseUntil, limit, requestIds }) {
      const isDue = requestIds
        ? and(inArray(messages.requestId, [...requestIds]), isNotNull(messages.reportDueAt))
        : lte(messages.reportDueAt, now)
      const due = await executor
        .select(key)
        .from(messages)
        .where(isDue)
        .orderBy(asc(messages.reportDueAt))
        .limit(limit)
      const claimed: Array<{ requestId: string; message: number }> = []
      for (const { requestId, message } of due) {
        const [row] = await executor
          .update(messages)
          .set({ reportDueAt: leaseUntil })
          // Checked again: another node may have leased it since the select.
          .where(and(eq(messages.requestId, requestId), eq(messages.message, message), isDue))
          .returning(key)
        if (row) claimed.push(row)
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await findNextDue()
      return row?.at ?? undefined
    },

    async setDue({ requestId, message }, dueAt) {
      await executor
        .update(messages)
        .set({ reportDueAt: dueAt })
        .where(and(eq(messages.requestId, requestId), eq(messages.message, message)))
    },
  }
}
