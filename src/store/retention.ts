import { and, asc, between, eq, gt, inArray, isNotNull, like, lt, sql } from 'drizzle-orm'
import type { RetentionStore } from '../domain/store/retention.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Queries for pseudonymization and erasure, across all tables with personal data. */
export function createRetentionStore(database: Database, executor: QueryExecutor): RetentionStore {
  const {
    retentionCheckpoints: checkpoints,
    otpRequests: requests,
    otpDeliveries,
    inboxMessages,
    idempotencyKeys,
    events,
    webhookDeliveries: deliveries,
    webhookAttempts: attempts,
  } = database.tables
  const p = sql.placeholder

  // Prepared because one transaction runs them a hundred times while requests wait.
  const replaceInRequest = database.prepare(() =>
    executor
      .update(requests)
      .set({
        phone: sql`${p('phone')}`,
        clientIp: null,
        contexts: null,
        metadata: null,
        previousRequest: null,
      })
      .where(eq(requests.id, p('id'))),
  )
  const replaceInEvent = database.prepare(() =>
    executor
      .update(events)
      .set({ phone: sql`${p('phone')}`, payload: sql`${p('payload')}` })
      .where(eq(events.seq, p('seq'))),
  )

  return {
    async checkpoint(scan) {
      const [row] = await executor.select().from(checkpoints).where(eq(checkpoints.scan, scan))
      return row?.checkpoint
    },

    async setCheckpoint(scan, checkpoint) {
      await executor
        .insert(checkpoints)
        .values({ scan, checkpoint })
        .onConflictDoUpdate({ target: checkpoints.scan, set: { checkpoint } })
    },

    listRequests: async (after, before, limit) =>
      executor
        .select({
          id: requests.id,
          developerId: requests.developerId,
          environment: requests.environment,
          phone: requests.phone,
        })
        .from(requests)
        .where(and(gt(requests.id, after), before === undefined ? undefined : lt(requests.id, before)))
        .orderBy(asc(requests.id))
        .limit(limit),

    listEvents: async (afterSeq, limit) =>
      executor
        .select({
          seq: events.seq,
          developerId: events.developerId,
          phone: events.phone,
          payload: events.payload,
          at: events.at,
        })
        .from(events)
        .where(gt(events.seq, afterSeq))
        .orderBy(asc(events.seq))
        .limit(limit),

    listDeliveries: async (after, limit) =>
      executor
        .select({ id: deliveries.id, eventSeq: deliveries.eventSeq })
        .from(deliveries)
        .where(gt(deliveries.id, after))
        .orderBy(asc(deliveries.id))
        .limit(limit),

    async replaceInRequest(id, phone) {
      await replaceInRequest({ id, phone })
    },

    async replaceInEvent(seq, phone, payload) {
      await replaceInEvent({ seq, phone, payload })
    },

    async clearResponses(from, to) {
      await executor
        .update(attempts)
        .set({ body: null })
        .where(and(between(attempts.deliveryId, from, to), isNotNull(attempts.body)))
    },

    async findResponseBatchEnd(after, before, limit) {
      const rows = await executor
        .select({ id: attempts.deliveryId })
        .from(attempts)
        .where(and(gt(attempts.deliveryId, after), lt(attempts.deliveryId, before)))
        .orderBy(asc(attempts.deliveryId))
        .limit(limit)
      return rows.at(-1)?.id
    },

    async deleteMessages(requestIds) {
      await executor.delete(otpDeliveries).where(inArray(otpDeliveries.requestId, [...requestIds]))
      await executor.delete(inboxMessages).where(inArray(inboxMessages.requestId, [...requestIds]))
    },

    async deleteIdempotencyResults(phone) {
      // A phone number contains no wildcard characters.
      const deleted = await executor
        .delete(idempotencyKeys)
        .where(like(idempotencyKeys.answer, `%"${phone}"%`))
        .returning({ key: idempotencyKeys.key })
      return deleted.length
    },
  }
}
