import { eq, sql } from 'drizzle-orm'
import type { EventStore } from '../domain/store/events.ts'
import type { InboxMessage } from '../domain/store/inbox.ts'
import type { Stores } from '../domain/store/store.ts'
import type { NewDelivery } from '../domain/store/webhook-outbox.ts'
import { createIds } from '../domain/model/ids.ts'
import type { NewLogEntry } from '../domain/model/log-entry.ts'
import type { Connection } from './engine/connection.ts'
import { compareKeys } from './engine/key-order.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'
import { payloadRow, phoneRow, type Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'
import { afterLastSeq, loadEventIds } from './event-ids.ts'
import { addToList, type ChangeEntryLists } from './list-changes.ts'

export type AppendNeeds = Pick<Stores, 'inbox' | 'webhookOutbox'> & {
  /** Called with the developer's id for each new entry, before its transaction commits. */
  onEvent(developerId: string): void
}

/** Creates the part of the event log that appends entries, with the webhooks and inbox messages that refer to them. */
export function createEventAppending(
  connection: Connection,
  changeEntryLists: ChangeEntryLists,
  { inbox, webhookOutbox, onEvent }: AppendNeeds,
): Pick<EventStore, 'reserve' | 'lockEndpoints' | 'append'> {
  const { database, executor, sealing } = connection
  const { counters } = database.tables
  const p = sql.placeholder
  // SQLite
  const allocateSeqs = database.sqlite?.prepare(() =>
    executor
      .update(counters)
      .set({ value: sql`${counters.value} + ${p('count')}` })
      .where(eq(counters.name, 'event_seq'))
      .returning({ value: counters.value }),
  )
  const insert = database.writeRows(executor, insertEvents(database.tables, sealing))
  // PostgreSQL
  const counterColumns = columnsOf<typeof counters, { name: string; value: number }>(counters, {})
  const addToCounter = database.writeRows(
    executor,
    insertInto(counterColumns, { onConflict: { key: ['name'], others: 'add' } }),
  )
  const createId = (at: number) => createIds({ now: () => at }, database.world.random)('evt')

  /** @returns the first; undefined on PostgreSQL */
  function reserve(count: number): number | undefined {
    const [counter] = allocateSeqs?.({ count }) ?? []
    if (allocateSeqs && !counter) throw new Error('the counter of log entries is missing')
    return counter && counter.value - count + 1
  }

  /**
   * Allocates the numbers of entries on PostgreSQL, where the transaction must not wait for an answer while it holds the
   * counter: they are offsets, see `afterLastSeq`.
   */
  function allocateOffsets(count: number): number {
    addToCounter([{ name: 'event_seq', value: count }])
    return 1 - count
  }

  return {
    reserve,

    lockEndpoints(events) {
      const [first] = events
      if (!first || !database.postgres) return
      const ids = events.flatMap(({ deliveries = [] }) => deliveries.map(({ endpointId }) => endpointId))
      webhookOutbox.lockEndpoints([...new Set(ids)].toSorted(compareKeys), first.entry.at)
    },

    async append(events, reserved) {
      const { length } = events
      const first = reserved ?? reserve(length) ?? allocateOffsets(length)
      const rows: NewEventRow[] = []
      const messages: InboxMessage[] = []
      const outgoing: NewDelivery[] = []
      for (const [index, event] of events.entries()) {
        const { entry, deliveries = [], toPayload, inbox: message } = event
        const { type, developerId, appId, requestId, at } = entry
        const seq = first + index
        const row: NewEventRow = { ...entry, seq, id: null, payload: null }
        if (toPayload && deliveries.length > 0) {
          // On PostgreSQL the number is not known yet: a payload gets an id of its own, which the entry keeps.
          row.id = database.postgres ? createId(at) : null
          const id = row.id ?? (await loadEventIds(connection)).encode(at, seq)
          const body = toPayload(id)
          row.payload = body
          const about = { developerId, appId, eventSeq: seq, type, now: at, payload: { id, body } }
          outgoing.push(...deliveries.map((delivery) => ({ ...delivery, ...about })))
        }
        rows.push(row)
        if (message && requestId !== null) messages.push({ ...message, seq, requestId, sentAt: at })
        changeEntryLists(addToList, row)
        onEvent(developerId)
      }
      insert(rows)
      inbox.insert(messages)
      if (outgoing.length === 0) return first
      // Endpoints by their ids: the lock order on PostgreSQL, and the one in which SQLite leases.
      webhookOutbox.insert(outgoing.toSorted((a, b) => compareKeys(a.endpointId, b.endpointId)))
      return first
    },
  }
}

/** An entry to insert, with the number and id that it gets. */
type NewEventRow = NewLogEntry & { seq: number; id: string | null; payload: string | null }

/** Writes an insert of entries; phone and payload are encrypted. */
const insertEvents = ({ events }: Pick<Tables, 'events'>, sealing: Sealing) =>
  insertInto(
    columnsOf<typeof events, NewEventRow>(events, {
      phone: (entry) => sealing.sealPhone('otp_requests.phone', phoneRow(entry), entry.phone),
      payload: (entry) => sealing.sealText('events.payload', payloadRow(entry), entry.payload),
    }),
    { computed: { seq: afterLastSeq('given.seq') } },
  )
