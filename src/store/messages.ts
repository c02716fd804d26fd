import {
  and,
  asc,
  count,
  desc,
  eq,
  isNotNull,
  isNull,
  lte,
  or,
  sql,
  type InferSelectModel,
} from 'drizzle-orm'
import type { Message, MessageKey, ClaimedMessage } from '../domain/model/message.ts'
import type { MessageStore } from '../domain/store/messages.ts'
import type { Channel } from '../domain/model/request.ts'
import { messageSettings } from './applications.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import type { Connection } from './engine/connection.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { columnsOf, insertInto, updateTable } from './engine/row-writes.ts'
import { toOtpRequest } from './otp-request-rows.ts'
import type { Tables } from './engine/tables.ts'
import { createOutcomeReportQueue } from './outcome-report-queue.ts'

type Row = InferSelectModel<Tables['messages']>

const splitNames = (text: string) => (text === '' ? [] : text.split(','))

/** Reads a row. The assertion holds because this store is the only writer of channels. */
export const toMessage = (row: Row): Message => ({
  ...row,
  channels: splitNames(row.channels) as Channel[],
  excluded: splitNames(row.excluded),
})

/** Creates the statements that write messages. */
function createMessageWrites({ messages }: Pick<Tables, 'messages'>) {
  const columns = columnsOf<typeof messages, Message>(messages, {
    channels: ({ channels }) => channels.join(','),
    excluded: ({ excluded }) => excluded.join(','),
  })
  return {
    insert: insertInto(columns),
    // prettier-ignore
    update: updateTable(columns, {
      set: [
        'status', 'provider', 'messageId', 'failure', 'excluded', 'attempts', 'nextAttemptAt', 'leaseOwner', 'leaseUntil',
        'reportDueAt', 'estimatedPrice', 'chargedPrice', 'updatedAt',
      ],
      key: ['requestId', 'messageNumber'],
    }),
  }
}

/** Due messages that a claim gives an order. An outage leaves many more, which must not all be read for each claim. */
const rankedMax = 2_000

/** Stores the outbox of OTP messages, which workers lease. */
export function createMessageStore(connection: Connection): MessageStore {
  const { database, executor, sealing } = connection
  const { messages, otpRequests, applications } = database.tables
  const p = sql.placeholder
  const matchesKey = (key: MessageKey) =>
    and(eq(messages.requestId, key.requestId), eq(messages.messageNumber, key.messageNumber))

  const writes = createMessageWrites(database.tables)
  const insert = database.writeRows(executor, writes.insert)
  const update = database.writeRows(executor, writes.update)
  const listDue = database.prepare(() => {
    const waiting = executor
      .select()
      .from(messages)
      .where(
        and(
          // A literal: SQLite uses the partial index of pending messages only if it sees the same text.
          sql`${messages.status} = 'pending'`,
          lte(messages.nextAttemptAt, p('now')),
          or(isNull(messages.leaseUntil), lte(messages.leaseUntil, p('now'))),
        ),
      )
      .orderBy(asc(messages.nextAttemptAt))
      .limit(rankedMax)
      .as('waiting')
    const { developerId } = otpRequests
    const turn = sql`row_number() over (partition by ${developerId} order by ${waiting.nextAttemptAt})`
    return executor
      .select({
        requestId: waiting.requestId,
        messageNumber: waiting.messageNumber,
        leaseOwner: waiting.leaseOwner,
        developerId,
      })
      .from(waiting)
      .leftJoin(otpRequests, eq(otpRequests.id, waiting.requestId))
      .orderBy(turn, asc(waiting.nextAttemptAt))
  })
  const findNextDue = database.prepare(() => {
    // Leased messages were due when they were leased, so they are among the first.
    const first = executor
      .select({ nextAttemptAt: messages.nextAttemptAt, leaseUntil: messages.leaseUntil })
      .from(messages)
      .where(sql`${messages.status} = 'pending'`)
      .orderBy(asc(messages.nextAttemptAt))
      .limit(rankedMax)
      .as('first')
    const dueAt = sql<number | null>`min(case when ${first.leaseUntil} > ${first.nextAttemptAt}
      then ${first.leaseUntil} else ${first.nextAttemptAt} end)`
    return executor.select({ at: dueAt.mapWith(Number) }).from(first)
  })
  const findByMessageId = prepareFind(connection, messages, 'provider', 'messageId')
  const load = database.prepare(() =>
    executor
      .select({ message: messages, request: otpRequests, application: messageSettings(applications) })
      .from(messages)
      .innerJoin(otpRequests, eq(otpRequests.id, messages.requestId))
      .leftJoin(applications, database.matchesShortId(applications.id, otpRequests.appId))
      .where(and(eq(messages.requestId, p('requestId')), eq(messages.messageNumber, p('messageNumber')))),
  )

  return {
    reports: createOutcomeReportQueue(connection),

    insert,

    update,

    async load(key) {
      const [row] = await load(key)
      return row && { ...row, message: toMessage(row.message), request: toOtpRequest(sealing, row.request) }
    },

    async claim({ owner, now, leaseUntil, permits }) {
      const due = await listDue({ now })
      const claimed: ClaimedMessage[] = []
      for (const { developerId, leaseOwner, ...key } of due) {
        const use = { developerId: developerId ?? '' }
        const returnPermit = permits.take(use)
        if (!returnPermit) continue
        const [row] = await executor
          .update(messages)
          .set({ leaseOwner: owner, leaseUntil, attempts: sql`${messages.attempts} + 1` })
          .where(
            and(
              matchesKey(key),
              eq(messages.status, 'pending'),
              // Checked again: on PostgreSQL another node may have leased it since the select.
              lte(messages.nextAttemptAt, now),
              or(isNull(messages.leaseUntil), lte(messages.leaseUntil, now)),
            ),
          )
          .returning({ attempt: messages.attempts })
        // An attempt that ends releases its lease.
        const interrupted = leaseOwner !== null && { isInterrupted: true }
        if (row) claimed.push({ ...key, ...use, owner, attempt: row.attempt, ...interrupted })
        else returnPermit()
      }
      return claimed
    },

    async nextDueAt() {
      const [row] = await findNextDue()
      return row?.at ?? undefined
    },

    async findForReceipt(provider, { messageId, requestId }) {
      if (messageId !== null) {
        const messageById = await findByMessageId({ provider, messageId })
        if (messageById) return messageById
      }
      if (requestId === null) return undefined
      // A row with a different message id is a different message.
      const hasNoMessageId = messageId === null ? undefined : isNull(messages.messageId)
      const isOwn = and(eq(messages.requestId, requestId), eq(messages.provider, provider), hasNoMessageId)
      return onTable(executor, messages).find(isOwn, desc(messages.messageNumber))
    },

    async countPending(limit) {
      const pending = executor
        .select({ messageNumber: messages.messageNumber })
        .from(messages)
        .where(sql`${messages.status} = 'pending'`)
        .limit(limit)
        .as('pending')
      const [row] = await executor.select({ count: count() }).from(pending)
      return row?.count ?? 0
    },

    async releaseAll() {
      const isLeased = and(eq(messages.status, 'pending'), isNotNull(messages.leaseOwner))
      // The owner stays, as it says that the attempt did not end.
      await onTable(executor, messages).update({ leaseUntil: null }, isLeased)
    },

    async deleteOldest(until, batchSize) {
      if (await database.postgres?.partitions.dropOldest(executor, 'otp_deliveries', until)) return true
      const { requestId: key, createdAt: at } = messages
      return (await deleteOldestByKey(executor, { key, at }, { until, batchSize }, { key })).length > 0
    },
  }
}
