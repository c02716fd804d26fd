import {
  and,
  asc,
  desc,
  eq,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  or,
  sql,
  type InferSelectModel,
} from 'drizzle-orm'
import type { FailureClass } from '../domain/model/delivery.ts'
import type { ClaimedMessage, Message, MessageKey } from '../domain/model/message.ts'
import type { Sealing } from './engine/sealing.ts'
import type { OtpDeliveryStore } from '../domain/store/otp-deliveries.ts'
import type { Channel } from '../domain/model/request.ts'
import { messageSettings } from './applications.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { toOtpRequest } from './otp-requests.ts'
import type { Tables } from './engine/tables.ts'

type Row = InferSelectModel<Tables['otpDeliveries']>

const splitNames = (text: string) => (text === '' ? [] : text.split(','))

/** The assertions hold because this store is the only writer of channels and failures. */
const toMessage = (row: Row): Message => ({
  requestId: row.requestId,
  message: row.message,
  channels: splitNames(row.channels) as Channel[],
  status: row.status,
  provider: row.provider,
  messageId: row.messageId,
  failure: row.failure as FailureClass | null,
  excluded: splitNames(row.excluded),
  attempts: row.attempts,
  leaseUntil: row.leaseUntil,
})

/** Stores the outbox of OTP messages, which workers lease. */
export function createOtpDeliveryStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): OtpDeliveryStore {
  const { otpDeliveries: messages, otpRequests, applications } = database.tables
  const p = sql.placeholder
  const matchesKey = (key: MessageKey) =>
    and(eq(messages.requestId, key.requestId), eq(messages.message, key.message))

  // Prepared because every send runs it.
  const insert = database.prepare(() =>
    executor.insert(messages).values({
      requestId: p('requestId'),
      message: p('message'),
      channels: p('channels'),
      status: 'pending',
      attempts: 1,
      nextAttemptAt: p('now'),
      leaseOwner: p('owner'),
      leaseUntil: p('leaseUntil'),
      createdAt: p('now'),
      updatedAt: p('now'),
    }),
  )
  const load = database.prepare(() =>
    executor
      .select({ message: messages, request: otpRequests, application: messageSettings(applications) })
      .from(messages)
      .innerJoin(otpRequests, eq(otpRequests.id, messages.requestId))
      .leftJoin(applications, database.matchesShortId(applications.id, otpRequests.appId))
      .where(and(eq(messages.requestId, p('requestId')), eq(messages.message, p('message')))),
  )

  const isLeasedBy = (claim: ClaimedMessage) =>
    and(
      matchesKey(claim),
      eq(messages.status, 'pending'),
      eq(messages.leaseOwner, claim.owner),
      eq(messages.attempts, claim.attempt),
    )

  return {
    async insert({ channels, ...key }, owner, now, leaseUntil) {
      await insert({ ...key, channels: channels.join(','), owner, now, leaseUntil })
    },

    async supersede({ requestId, message }, now) {
      await executor
        .update(messages)
        .set({ status: 'void', nextAttemptAt: null, updatedAt: now })
        .where(
          and(
            eq(messages.requestId, requestId),
            lt(messages.message, message),
            eq(messages.status, 'pending'),
            or(isNull(messages.leaseUntil), lte(messages.leaseUntil, now)),
          ),
        )
    },

    async find(key) {
      const [row] = await executor.select().from(messages).where(matchesKey(key))
      return row && toMessage(row)
    },

    async load(key) {
      const [row] = await load(key)
      return row && { ...row, message: toMessage(row.message), request: toOtpRequest(sealing, row.request) }
    },

    async list(requestId) {
      const rows = await executor
        .select()
        .from(messages)
        .where(eq(messages.requestId, requestId))
        .orderBy(asc(messages.message))
      return rows.map(toMessage)
    },

    async claim({ owner, now, leaseUntil, limit }) {
      const due = await executor
        .select({ requestId: messages.requestId, message: messages.message })
        .from(messages)
        .where(
          and(
            // A literal: SQLite uses the partial index of pending messages only if it sees the same text.
            sql`${messages.status} = 'pending'`,
            lte(messages.nextAttemptAt, now),
            or(isNull(messages.leaseUntil), lte(messages.leaseUntil, now)),
          ),
        )
        .orderBy(asc(messages.nextAttemptAt))
        .limit(limit)
      const claimed: ClaimedMessage[] = []
      for (const key of due) {
        const [row] = await executor
          .update(messages)
          .set({ leaseOwner: owner, leaseUntil, attempts: sql`${messages.attempts} + 1` })
          .where(
            and(
              matchesKey(key),
              eq(messages.status, 'pending'),
              // Checked again: another node may have leased it since the select.
              lte(messages.nextAttemptAt, now),
              or(isNull(messages.leaseUntil), lte(messages.leaseUntil, now)),
            ),
          )
          .returning({ attempt: messages.attempts })
        if (row) claimed.push({ ...key, owner, attempt: row.attempt })
      }
      return claimed
    },

    async finish(claim, { excluded, ...outcome }, now) {
      const finished = await executor
        .update(messages)
        .set({ ...outcome, excluded: excluded.join(','), leaseOwner: null, leaseUntil: null, updatedAt: now })
        .where(isLeasedBy(claim))
        .returning({ message: messages.message })
      return finished.length > 0
    },

    async findForReceipt(provider, { messageId, requestId }) {
      const key = { requestId: messages.requestId, message: messages.message }
      if (messageId !== null) {
        const [messageById] = await executor
          .select(key)
          .from(messages)
          .where(and(eq(messages.provider, provider), eq(messages.messageId, messageId)))
          .limit(1)
        if (messageById) return messageById
      }
      if (requestId === null) return undefined
      // A row with a different message id is a different message.
      const hasNoMessageId = messageId === null ? undefined : isNull(messages.messageId)
      const [newest] = await executor
        .select(key)
        .from(messages)
        .where(and(eq(messages.requestId, requestId), eq(messages.provider, provider), hasNoMessageId))
        .orderBy(desc(messages.message))
        .limit(1)
      return newest
    },

    async receive(key, provider, { status, messageId, failure }, now) {
      const previousStatuses = status === 'sent' ? (['unknown'] as const) : (['sent', 'unknown'] as const)
      const changed = await executor
        .update(messages)
        .set({
          status,
          messageId: sql`coalesce(${messages.messageId}, ${messageId})`,
          failure: failure?.class ?? null,
          updatedAt: now,
        })
        .where(
          and(matchesKey(key), eq(messages.provider, provider), inArray(messages.status, previousStatuses)),
        )
        .returning({ message: messages.message })
      return changed.length > 0
    },

    async reopen(key, excluded, now) {
      await executor
        .update(messages)
        .set({
          status: 'pending',
          provider: null,
          messageId: null,
          excluded: excluded.join(','),
          nextAttemptAt: now,
          updatedAt: now,
        })
        .where(matchesKey(key))
    },

    async releaseAll() {
      await executor
        .update(messages)
        .set({ leaseOwner: null, leaseUntil: null })
        .where(and(eq(messages.status, 'pending'), isNotNull(messages.leaseOwner)))
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, messages, messages.requestId, messages.createdAt, until, batchSize),
  }
}
