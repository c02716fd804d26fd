import { and, asc, between, eq, inArray, isNotNull, lt, ne, sql } from 'drizzle-orm'
import { erasedPhone } from '../domain/model/pseudonyms.ts'
import { withoutMessageIds } from '../domain/model/try-lines.ts'
import type { RetentionStore } from '../domain/store/retention.ts'
import type { Connection } from './engine/connection.ts'
import { onTable, prepareFindColumns } from './engine/on-table.ts'
import { pageAfter } from './engine/page-after.ts'
import { payloadRow, phoneRow } from './engine/sealing.ts'
import { idempotencyRow } from './idempotency.ts'
import { removeFromList } from './list-changes.ts'
import { inboxList } from './sqlite/list-numbers.ts'
import { pick } from '../shared/fields.ts'

/** Queries for pseudonymization and erasure, across all tables with personal data. */
export function createRetentionStore(connection: Connection): RetentionStore {
  const { database, executor, sealing } = connection
  const {
    retentionCheckpoints: checkpoints,
    otpRequests: requests,
    messages,
    inboxMessages,
    idempotencyKeys,
    events,
    webhookDeliveries: deliveries,
    webhookAttempts: attempts,
  } = database.tables
  const scans = onTable(executor, checkpoints)
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
        ownText: null,
        template: null,
        previousRequest: null,
        history: sql`${p('history')}`,
      })
      .where(and(eq(requests.id, p('id')), ne(requests.phone, erasedPhone))),
  )
  const findHistory = prepareFindColumns(connection, requests, { history: requests.history }, 'id')
  const payloadColumns = pick(events, ['requestId', 'type', 'at', 'payload'])
  const findEvent = prepareFindColumns(connection, events, payloadColumns, 'seq')
  const replaceInEvent = database.prepare(() =>
    executor
      .update(events)
      .set({ phone: sql`${p('phone')}`, payload: sql`${p('payload')}` })
      .where(and(eq(events.seq, p('seq')), ne(events.phone, erasedPhone))),
  )

  return {
    preparePartition: async (now) =>
      (await database.postgres?.partitions.prepareNext(executor, now)) ?? false,

    checkpoint: async (scan) => (await scans.find(eq(checkpoints.scan, scan)))?.checkpoint,
    setCheckpoint: async (scan, checkpoint) =>
      void (await scans.put({ scan, checkpoint }, { target: checkpoints.scan, set: { checkpoint } })),

    async listRequests(after, before, limit) {
      const { id, developerId, environment, phone } = requests
      const isBefore = before === undefined ? undefined : lt(id, before)
      const columns = { id, developerId, environment, phone }
      const rows = await pageAfter(executor, columns, id, after, limit, isBefore)
      return rows.map((row) => ({
        ...row,
        phone: sealing.openPhone('otp_requests.phone', row.id, row.phone),
      }))
    },

    async listEvents(afterSeq, limit) {
      const { seq, developerId, requestId, phone, at } = events
      const rows = await pageAfter(executor, { seq, developerId, requestId, phone, at }, seq, afterSeq, limit)
      return rows.map((row) => ({
        ...row,
        phone: sealing.openPhone('otp_requests.phone', phoneRow(row), row.phone),
      }))
    },

    async listDeliveries(after, limit, endpointId) {
      const { id, eventSeq } = deliveries
      const isOfEndpoint = endpointId === undefined ? undefined : eq(deliveries.endpointId, endpointId)
      return pageAfter(executor, { id, eventSeq }, id, after, limit, isOfEndpoint)
    },

    async replaceInRequest(id, phone) {
      await database.lock(executor, requests, requests.id, id)
      const row = await findHistory({ id })
      if (row) await replaceInRequest({ id, phone, history: withoutMessageIds(row.history) })
    },

    async replaceInEvent(seq, phone, redact) {
      const row = await findEvent({ seq })
      if (!row) return
      const name = payloadRow(row)
      const opened = sealing.openText('events.payload', name, row.payload)
      const payload = sealing.sealText('events.payload', name, opened === null ? null : redact(opened))
      await replaceInEvent({ seq, phone, payload })
      database.sqlite?.log.increment()
    },

    async clearResponses(from, to) {
      const hasBody = and(between(attempts.deliveryId, from, to), isNotNull(attempts.body))
      await onTable(executor, attempts).update({ body: null }, hasBody)
    },

    async findResponseBatchEnd(after, before, limit) {
      const id = attempts.deliveryId
      const rows = await pageAfter(executor, { id }, id, after, limit, lt(id, before))
      return rows.at(-1)?.id
    },

    async deleteMessages(requestIds) {
      await onTable(executor, messages).delete(inArray(messages.requestId, [...requestIds]))
      const inbox = onTable(executor, inboxMessages)
      for (const row of await inbox.take(inArray(inboxMessages.requestId, [...requestIds])))
        removeFromList(database, inboxList, row.developerId, row.seq)
    },

    async listIdempotencyResults(after, limit, ofCaller) {
      const { caller, route, key, answer } = idempotencyKeys
      const isAfter =
        after && sql`(${caller}, ${route}, ${key}) > (${after.caller}, ${after.route}, ${after.key})`
      const rows = await executor
        .select({ caller, route, key, answer })
        .from(idempotencyKeys)
        .where(and(ofCaller === undefined ? undefined : eq(caller, ofCaller), isAfter))
        .orderBy(asc(caller), asc(route), asc(key))
        .limit(limit)
      return rows.map((row) => ({
        ...row,
        answer: sealing.openText('idempotency_keys.answer', idempotencyRow(row), row.answer),
      }))
    },

    deleteIdempotencyResult({ caller, route, key }) {
      const keys = idempotencyKeys
      const isResult = and(eq(keys.caller, caller), eq(keys.route, route), eq(keys.key, key))
      return onTable(executor, keys).delete(isResult)
    },
  }
}
