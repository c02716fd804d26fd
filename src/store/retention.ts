import { and, asc, between, eq, gt, inArray, isNotNull, like, lt, lte, sql } from 'drizzle-orm'
import type { RetentionStore } from '../domain/upkeep/retention-store.ts'
import type { Builders, Database } from './engine/database.ts'

export function createRetentionStore(database: Database, on: Builders): RetentionStore {
  const {
    retentionMarks: marks,
    otpRequests: requests,
    otpDeliveries,
    inboxMessages,
    idempotencyKeys,
    events,
    identities,
    webhookDeliveries: deliveries,
    webhookAttempts: attempts,
  } = database.tables
  const p = sql.placeholder

  // A hundred times in a transaction that calls wait for.
  const replaceInRequest = database.prepare(() =>
    on
      .update(requests)
      .set({ phone: sql`${p('phone')}`, clientIp: null, metadata: null })
      .where(eq(requests.id, p('id'))),
  )
  const replaceInEvent = database.prepare(() =>
    on
      .update(events)
      .set({ phone: sql`${p('phone')}`, payload: sql`${p('payload')}` })
      .where(eq(events.seq, p('seq'))),
  )

  return {
    async position(walk) {
      const [mark] = await on.select().from(marks).where(eq(marks.walk, walk))
      return mark?.position
    },

    async setPosition(walk, position) {
      await on
        .insert(marks)
        .values({ walk, position })
        .onConflictDoUpdate({ target: marks.walk, set: { position } })
    },

    listRequests: async (after, before, limit) =>
      on
        .select({ id: requests.id, developerId: requests.developerId, phone: requests.phone })
        .from(requests)
        .where(and(gt(requests.id, after), before === undefined ? undefined : lt(requests.id, before)))
        .orderBy(asc(requests.id))
        .limit(limit),

    listEvents: async (afterSeq, limit) =>
      on
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

    listIdentities: async (after, limit) =>
      on
        .select({
          id: identities.id,
          developerId: identities.developerId,
          phone: identities.phone,
          lastVerifiedAt: identities.lastVerifiedAt,
        })
        .from(identities)
        .where(gt(identities.id, after))
        .orderBy(asc(identities.id))
        .limit(limit),

    listDeliveries: async (after, limit) =>
      on
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

    async replaceInIdentity(id, known, phone, verifiedUntil) {
      const replaced = await on
        .update(identities)
        .set({ phone })
        .where(
          and(
            eq(identities.id, id),
            eq(identities.phone, known),
            lte(identities.lastVerifiedAt, verifiedUntil),
          ),
        )
        .returning({ id: identities.id })
      return replaced.length === 1
    },

    async deleteIdentity(id) {
      await on.delete(identities).where(eq(identities.id, id))
    },

    async clearAnswers(from, to) {
      await on
        .update(attempts)
        .set({ body: null })
        .where(and(between(attempts.deliveryId, from, to), isNotNull(attempts.body)))
    },

    async nextAnswers(after, before, limit) {
      const rows = await on
        .select({ id: attempts.deliveryId })
        .from(attempts)
        .where(and(gt(attempts.deliveryId, after), lt(attempts.deliveryId, before)))
        .orderBy(asc(attempts.deliveryId))
        .limit(limit)
      return rows.at(-1)?.id
    },

    async deleteMessages(requestIds) {
      await on.delete(otpDeliveries).where(inArray(otpDeliveries.requestId, [...requestIds]))
      await on.delete(inboxMessages).where(inArray(inboxMessages.requestId, [...requestIds]))
    },

    async deleteIdempotencyAnswers(phone) {
      // A number has no character that a pattern takes for another.
      const deleted = await on
        .delete(idempotencyKeys)
        .where(like(idempotencyKeys.answer, `%"${phone}"%`))
        .returning({ key: idempotencyKeys.key })
      return deleted.length
    },
  }
}
