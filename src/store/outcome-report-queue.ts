import { and, asc, eq, gt, inArray, isNotNull, lte, min, sql } from 'drizzle-orm'
import type { OutcomeReportQueue } from '../domain/store/outcome-report-queue.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { textParam } from './engine/query-params.ts'

/** Stores when providers hear how the requests of their messages ended: a column of the outbox of messages. */
export function createOutcomeReportQueue({ database, executor }: Connection): OutcomeReportQueue {
  const { messages } = database.tables
  const key = { requestId: messages.requestId, messageNumber: messages.messageNumber }

  const findNextDue = database.prepare(() =>
    executor
      .select({ at: min(messages.reportDueAt) })
      .from(messages)
      .where(isNotNull(messages.reportDueAt)),
  )

  const findLater = database.prepare(() =>
    executor
      .select(key)
      .from(messages)
      .where(
        and(
          eq(messages.provider, textParam('provider')),
          eq(messages.messageId, textParam('messageId')),
          gt(messages.createdAt, sql.placeholder('createdAt')),
        ),
      )
      .limit(1),
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
      const claimed: Array<{ requestId: string; messageNumber: number }> = []
      for (const { requestId, messageNumber } of due) {
        const [row] = await executor
          .update(messages)
          .set({ reportDueAt: leaseUntil })
          // Checked again: another node may have leased it since the select.
          .where(and(eq(messages.requestId, requestId), eq(messages.messageNumber, messageNumber), isDue))
          .returning(key)
        if (row) claimed.push(row)
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await findNextDue()
      return row?.at ?? undefined
    },

    async hasLaterMessage({ provider, messageId, createdAt }) {
      const [row] = await findLater({ provider, messageId, createdAt })
      return row !== undefined
    },

    async endLease({ requestId, messageNumber }, leaseUntil, dueAt) {
      const isLeased = and(
        eq(messages.requestId, requestId),
        eq(messages.messageNumber, messageNumber),
        eq(messages.reportDueAt, leaseUntil),
      )
      await onTable(executor, messages).update({ reportDueAt: dueAt }, isLeased)
    },
  }
}
