import { and, asc, between, eq, gt, inArray, isNotNull, lt, sql } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import type { RetentionStore } from '../domain/store/retention.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { eventIdColumns, loadEventIds, withEventId } from './event-ids.ts'
import { idempotencyRow } from './idempotency.ts'

/** Queries for pseudonymization and erasure, across all tables with personal data. */
export function createRetentionStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
): RetentionStore {
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
  const findEvent = database.prepare(() =>
    executor
      .select({ ...eventIdColumns(events), payload: events.payload })
      .from(events)
      .where(eq(events.seq, p('seq'))),
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

    async listRequests(after, before, limit) {
      const rows = await executor
        .select({
          id: requests.id,
          developerId: requests.developerId,
          environment: requests.environment,
          phone: requests.phone,
        })
        .from(requests)
        .where(and(gt(requests.id, after), before === undefined ? undefined : lt(requests.id, before)))
        .orderBy(asc(requests.id))
        .limit(limit)
      return rows.map((row) => ({
        ...row,
        phone: sealing.openPhone('otp_requests.phone', row.id, row.phone),
      }))
    },

    async listEvents(afterSeq, limit) {
      const rows = await executor
        .select({
          ...eventIdColumns(events),
          developerId: events.developerId,
          requestId: events.requestId,
          phone: events.phone,
        })
        .from(events)
        .where(gt(events.seq, afterSeq))
        .orderBy(asc(events.seq))
        .limit(limit)
      const ids = await loadEventIds(database, executor)
      return rows.map(({ eventSeq, eventAt, oldEventId, developerId, requestId, phone }) => {
        const owner = requestId ?? oldEventId ?? ids.encode(eventAt, eventSeq)
        return {
          seq: eventSeq,
          developerId,
          phone: sealing.openPhone('otp_requests.phone', owner, phone),
          at: eventAt,
        }
      })
    },

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

    async replaceInEvent(seq, phone, redact) {
      const [row] = await findEvent({ seq })
      if (!row) return
      const { eventId, payload: stored } = withEventId(await loadEventIds(database, executor), row)
      const payload = sealing.openText('events.payload', eventId, stored)
      const redacted = payload === null ? null : redact(payload)
      await replaceInEvent({ seq, phone, payload: sealing.sealText('events.payload', eventId, redacted) })
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

    async listIdempotencyResults(after, limit) {
      const { caller, route, key, answer } = idempotencyKeys
      const rows = await executor
        .select({ caller, route, key, answer })
        .from(idempotencyKeys)
        .where(after && sql`(${caller}, ${route}, ${key}) > (${after.caller}, ${after.route}, ${after.key})`)
        .orderBy(asc(caller), asc(route), asc(key))
        .limit(limit)
      return rows.map((row) => ({
        ...row,
        answer: sealing.openText('idempotency_keys.answer', idempotencyRow(row), row.answer),
      }))
    },

    async deleteIdempotencyResult({ caller, route, key }) {
      const keys = idempotencyKeys
      await executor
        .delete(keys)
        .where(and(eq(keys.caller, caller), eq(keys.route, route), eq(keys.key, key)))
    },
  }
}
