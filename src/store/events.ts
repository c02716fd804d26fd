import { and, asc, desc, eq, gt, gte, lt, lte, sql } from 'drizzle-orm'
import type { Sealing } from './engine/sealing.ts'
import type { EventStore, LogQuery } from '../domain/store/events.ts'
import type { LogType } from '../shared/event-kinds.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import { loadEventIds } from './event-ids.ts'
import { isOwnedBy, ownerShortId, type OwnerShortId } from './ownership.ts'

/**
 * Creates the store of the event log.
 *
 * @param onEvent called with the developer's id for each new entry, before its transaction commits
 */
export function createEventStore(
  database: Database,
  executor: QueryExecutor,
  sealing: Sealing,
  onEvent: (developerId: string) => void = () => {},
): EventStore {
  const { events, counters } = database.tables
  const p = sql.placeholder
  const columns = {
    seq: events.seq,
    id: events.id,
    // Written by insert below from a LogType.
    type: sql<LogType>`${events.type}`,
    appId: events.appId,
    requestId: events.requestId,
    phone: events.phone,
    status: events.status,
    detail: events.detail,
    at: events.at,
  }

  const allocateSeqs = database.prepare(() =>
    executor
      .update(counters)
      .set({ value: sql`${counters.value} + ${p('count')}` })
      .where(eq(counters.name, 'event_seq'))
      .returning({ value: counters.value }),
  )
  const insert = database.prepare(() =>
    executor.insert(events).values({
      seq: p('seq'),
      type: p('type'),
      developerId: p('developerId'),
      appId: p('appId'),
      requestId: p('requestId'),
      phone: p('phone'),
      status: p('status'),
      detail: p('detail'),
      payload: p('payload'),
      at: p('at'),
    }),
  )
  type ListFilter = OwnerShortId & Omit<LogQuery, 'appId'>
  const list = prepareFiltered(
    database,
    ({ types, limit, beforeSeq, afterSeq, fromSeq, untilSeq, ...owner }: FilterPlaceholders<ListFilter>) =>
      executor
        .select(columns)
        .from(events)
        .where(
          and(
            isOwnedBy(events, owner),
            types && sql`${events.type} in ${types}`,
            // Keyset pagination: only rows older than the last page's, or newer when reading forward.
            beforeSeq && lt(events.seq, beforeSeq),
            afterSeq && gt(events.seq, afterSeq),
            fromSeq && gte(events.seq, fromSeq),
            untilSeq && lte(events.seq, untilSeq),
          ),
        )
        .orderBy(orderByLimit(afterSeq ? asc(events.seq) : desc(events.seq), limit)),
  )

  return {
    async append(entries) {
      const [counter] = await allocateSeqs({ count: entries.length })
      if (!counter) throw new Error('the counter of log entries is missing')
      const first = counter.value - entries.length + 1
      const ids = await loadEventIds(database, executor)
      for (const [index, { entry, toPayload }] of entries.entries()) {
        const seq = first + index
        const payload = toPayload ? toPayload(ids.encode(entry.at, seq)) : null
        await insert({
          ...entry,
          seq,
          phone: sealing.sealPhone('otp_requests.phone', phoneRow(entry), entry.phone),
          payload: sealing.sealText('events.payload', payloadRow(entry), payload),
        })
        onEvent(entry.developerId)
      }
      return first
    },

    async list(developerId, { appId, ...query }) {
      const rows = await list({ ...query, ...ownerShortId(database, { developerId, appId }) })
      const ids = await loadEventIds(database, executor)
      return rows.map((row) => ({
        ...row,
        id: row.id ?? ids.encode(row.at, row.seq),
        phone: sealing.openPhone('otp_requests.phone', phoneRow(row), row.phone),
      }))
    },

    async findSeq(developerId, id) {
      const decoded = (await loadEventIds(database, executor)).decode(id)
      const condition = decoded
        ? and(eq(events.seq, decoded.seq), eq(events.at, decoded.at))
        : eq(events.id, id)
      const [row] = await executor
        .select({ seq: events.seq })
        .from(events)
        .where(and(condition, eq(events.developerId, developerId)))
      return row?.seq
    },

    deleteOldest: (until, batchSize) =>
      deleteOldestByKey(executor, events, events.seq, events.at, until, batchSize),
  }
}

/** Names the row of an entry's phone in the associated data: that of its request, so that both hold the same value. */
export const phoneRow = ({ requestId }: { requestId: string | null }) => requestId ?? ''

/** Names an entry in the associated data of its sealed payload. */
export const payloadRow = ({ requestId, type, at }: { requestId: string | null; type: string; at: number }) =>
  `${requestId ?? ''} ${type} ${at}`
