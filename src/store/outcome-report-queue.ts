import { and, asc, eq, gt, inArray, isNotNull, lte, min, sql } from 'drizzle-orm'
import type { MessageKey } from '../domain/model/message.ts'
import type { OutcomeReportQueue } from '../domain/store/outcome-report-queue.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'
import { textParam } from './engine/query-params.ts'

/** Stores when providers hear how the requests of their messages ended: a column of the outbox of messages. */
export function createOutcomeReportQueue({ database, executor }: Connection): OutcomeReportQueue {
  const { messages } = database.tables
  const rows = onTable(executor, messages)
  const columns = { requestId: messages.requestId, messageNumber: messages.messageNumber }
  const matchesKey = ({ requestId, messageNumber }: MessageKey) =>
    and(eq(messages.requestId, requestId), eq(messages.messageNumber, messageNumber))

  const findNextDue = database.prepare(() =>
    executor
      .select({ at: min(messages.reportDueAt) })
      .from(messages)
      .where(isNotNull(messages.reportDueAt)),
  )

  const findLater = database.prepare(() =>
    executor
      .select(columns)
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
        .select(columns)
        .from(messages)
        .where(isDue)
        .orderBy(asc(messages.reportDueAt))
        .limit(limit)
      const claimed: MessageKey[] = []
      for (const message of due) {
        // Checked again: another node may have leased it since the select.
        const isStillDue = and(matchesKey(message), isDue)
        if (await rows.updateOne({ reportDueAt: leaseUntil }, isStillDue)) claimed.push(message)
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

    async endLease(key, leaseUntil, dueAt) {
      const isLeased = and(matchesKey(key), eq(messages.reportDueAt, leaseUntil))
      await rows.update({ reportDueAt: dueAt }, isLeased)
    },
  }
}
