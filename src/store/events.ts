import { and, eq, getTableColumns, gt, lt, lte, sql } from 'drizzle-orm'
import type { EventStore, LogQuery } from '../domain/store/events.ts'
import type { LogType } from '../shared/event-kinds.ts'
import { type FilterPlaceholders, inJson, prepareFiltered, textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { prepareFind } from './engine/on-table.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import type { EventIds } from '../domain/model/event-ids.ts'
import { createIds } from '../domain/model/ids.ts'
import type { LogEntry, NewLogEntry } from '../domain/model/log-entry.ts'
import type { InboxMessage } from '../domain/store/inbox.ts'
import type { Stores } from '../domain/store/store.ts'
import type { NewDelivery } from '../domain/store/webhook-outbox.ts'
import { compareKeys } from './engine/key-order.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'
import { afterLastSeq, loadEventIds, payloadRow, phoneRow } from './event-ids.ts'
import { inOrder, loadListed } from './sqlite/load-listed.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import { logLists, typeLists } from './sqlite/list-numbers.ts'
import { addToList, type ChangeEntryLists, createEntryLists, removeFromList } from './list-changes.ts'
import { createListSources } from './list-sources.ts'
import { createEventLocator } from './event-positions.ts'
import { createOpenedEntries } from './opened-entries.ts'
import { onlyOwn, ownerShortId, pageOf, type OwnerShortId } from './ownership.ts'

type AppendNeeds = Pick<Stores, 'inbox' | 'webhookOutbox'> & {
  /** Called with the developer's id for each new entry, before its transaction commits. */
  onEvent(developerId: string): void
}

/** Creates the store of the event log. */
export function createEventStore(connection: Connection, needs: AppendNeeds): EventStore {
  const { database, executor, sealing } = connection
  const { events, counters } = database.tables
  const { payload: _payload, ...listed } = getTableColumns(events)
  // Written by `append` from a LogType.
  const columns = { ...listed, type: sql<LogType>`${events.type}` }

  const findCounter = prepareFind(connection, counters, 'name')
  async function newestSeq(): Promise<number> {
    const counter = await findCounter({ name: 'event_seq' })
    if (!counter) throw new Error('the counter of log entries is missing')
    return counter.value
  }
  type PageFilter = OwnerShortId & Omit<LogQuery, 'appId'>
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ types, limit, beforeSeq, afterSeq, environment, ...owner }: FilterPlaceholders<PageFilter>) => {
      const isListed = and(
        types && sql`${events.type} in ${types}`,
        // Keyset pagination: only rows older than the last page's, or newer when reading forward.
        beforeSeq && lt(events.seq, beforeSeq),
        afterSeq && gt(events.seq, afterSeq),
      )
      const page = { isAscending: afterSeq !== undefined, limit }
      const rows = { table: events, key: events.seq }
      const { condition, order } = pageOf(connection, rows, { ...owner, environment }, isListed, page)
      return executor.select(columns).from(events).where(condition).orderBy(order)
    },
  )
  // SQLite
  const listSeqs = database.prepare(() =>
    executor
      .select(columns)
      .from(events)
      .where(inJson(events.seq, textParam('seqs'))),
  )

  type Row = Awaited<ReturnType<typeof listPage>>[number]
  function toEntries(rows: readonly Row[], ids: EventIds): LogEntry[] {
    const newIds = ids.encodeAll(rows)
    return rows.map((row, index) => ({
      ...row,
      id: row.id ?? newIds[index] ?? '',
      phone: sealing.openPhone('otp_requests.phone', phoneRow(row), row.phone),
    }))
  }

  const findEnvironment = createEnvironmentLookup(connection)
  const findSources = createListSources(connection, { developer: logLists, application: typeLists })
  const changeEntryLists = createEntryLists(connection)

  /** Loads a page on PostgreSQL: one type at a time, each in the order of its index. */
  async function loadPage(developerId: string, { appId, ...query }: LogQuery, ids: EventIds) {
    const owner = { developerId, appId }
    const { environment } = query
    if (appId !== undefined && environment !== undefined && (await findEnvironment(appId)) !== environment)
      return []
    const isAscending = query.afterSeq !== undefined
    const filter = { ...query, ...ownerShortId(database, owner) }
    const types = query.types ?? [undefined]
    // Each of several queries sees other commits. A page with a new entry of one type could lack one of another type before
    // it, which a reader that continues after the page would never see; so it ends where all queries see the log.
    const newest = types.length > 1 ? await newestSeq() : Infinity
    if (!isAscending && newest < Infinity)
      filter.beforeSeq = Math.min(query.beforeSeq ?? Infinity, newest + 1)
    const pages = types.map((type) => listPage({ ...filter, types: type && [type] }))
    const rows = onlyOwn((await Promise.all(pages)).flat(), owner) ?? []
    const sorted = rows
      .filter(({ seq }) => seq <= newest)
      .toSorted((a, b) => (isAscending ? a.seq - b.seq : b.seq - a.seq))
    return toEntries(sorted.slice(0, query.limit), ids)
  }

  const isInTransaction = executor !== database.read
  // Only committed entries are kept: the number of one that is rolled back is used again.
  const openedEntries = isInTransaction || !database.sqlite ? undefined : createOpenedEntries(database.sqlite)

  /** Loads entries on SQLite. */
  const loadEntries = async (seqs: readonly number[], ids: EventIds) =>
    toEntries(await listSeqs({ seqs: JSON.stringify(seqs) }), ids)

  return {
    ...createEventAppending(connection, changeEntryLists, needs),

    async list(developerId, query) {
      const ids = await loadEventIds(connection)
      const lists = database.sqlite?.lists
      if (!lists) return loadPage(developerId, query, ids)
      const { appId, environment, types, limit, beforeSeq, afterSeq } = query
      const filter = types && [...new Set(types)].map((type) => typeLists[type])
      const sources = await findSources({ developerId, appId, environment }, filter)
      const range = afterSeq === undefined ? { before: beforeSeq } : { after: afterSeq }
      const load = (seqs: readonly number[]) => loadEntries(seqs, ids)
      // The newest entries are read again and again, older ones seldom.
      const kept = beforeSeq === undefined ? openedEntries : undefined
      return loadListed(lists, sources, range, limit, async (seqs: number[]) => {
        const entries = kept ? await kept.get(seqs, load) : inOrder(seqs, await load(seqs), ({ seq }) => seq)
        const isOwn = entries.every((entry) => entry === undefined || entry.developerId === developerId)
        return isOwn ? entries : undefined
      })
    },

    locate: createEventLocator(connection),

    newestSeq,

    async listDevelopers(afterSeq, upToSeq) {
      const rows = await executor
        .selectDistinct({ developerId: events.developerId })
        .from(events)
        .where(and(gt(events.seq, afterSeq), lte(events.seq, upToSeq)))
      return rows.map(({ developerId }) => developerId)
    },

    async findSeq(developerId, id) {
      const decoded = (await loadEventIds(connection)).decode(id)
      const condition = decoded
        ? and(eq(events.seq, decoded.seq), eq(events.at, decoded.at))
        : eq(events.id, id)
      const [row] = await executor
        .select({ seq: events.seq })
        .from(events)
        .where(and(condition, eq(events.developerId, developerId)))
      return row?.seq
    },

    async deleteOldest(until, batchSize) {
      if (await database.postgres?.partitions.dropOldest(executor, 'events', until)) return true
      const { seq, developerId, appId, at } = events
      const returned = { seq, type: columns.type, developerId, appId }
      const deleted = await deleteOldestByKey(executor, events, { key: seq, at }, until, batchSize, returned)
      for (const row of deleted) await changeEntryLists(removeFromList, row)
      database.sqlite?.log.increment()
      return deleted.length > 0
    },
  }
}

/** Creates the part of the event log that appends entries, with the webhooks and inbox messages that refer to them. */
function createEventAppending(
  connection: Connection,
  changeEntryLists: ChangeEntryLists,
  { inbox, webhookOutbox, onEvent }: AppendNeeds,
): Pick<EventStore, 'reserve' | 'lockEndpoints' | 'append'> {
  const { database, executor, sealing } = connection
  const { counters } = database.tables
  const p = sql.placeholder
  // SQLite
  const allocateSeqs = database.prepare(() =>
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

  async function allocate(count: number): Promise<number> {
    const [counter] = await allocateSeqs({ count })
    if (!counter) throw new Error('the counter of log entries is missing')
    return counter.value - count + 1
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
    reserve: async (count) => (database.postgres ? undefined : allocate(count)),

    lockEndpoints(events) {
      const [first] = events
      if (!first || !database.postgres) return
      const ids = events.flatMap(({ deliveries = [] }) => deliveries.map(({ endpointId }) => endpointId))
      webhookOutbox.lockEndpoints([...new Set(ids)].toSorted(compareKeys), first.entry.at)
    },

    async append(events, reserved) {
      const { length } = events
      const first = reserved ?? (database.postgres ? allocateOffsets(length) : await allocate(length))
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
        await changeEntryLists(addToList, row)
        onEvent(developerId)
      }
      insert(rows)
      inbox.insert(messages)
      if (outgoing.length === 0) return first
      // Endpoints by their ids: the lock order on PostgreSQL, and the one in which SQLite leases.
      await webhookOutbox.insert(outgoing.toSorted((a, b) => compareKeys(a.endpointId, b.endpointId)))
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
