import { and, eq, getTableColumns, gt, lt, lte } from 'drizzle-orm'
import type { EventStore, LogQuery } from '../domain/store/events.ts'
import type { LogType } from '../shared/event-kinds.ts'
import { type FilterPlaceholders, inJson, prepareFiltered, textParam } from './engine/query-params.ts'
import type { Connection } from './engine/connection.ts'
import { prepareFind } from './engine/on-table.ts'
import { deleteOldestByKey } from './engine/delete-oldest.ts'
import type { SqliteState } from './engine/sqlite-state.ts'
import type { LogEntry } from '../domain/model/log-entry.ts'
import { unreadablePhone } from '../domain/model/pseudonyms.ts'
import { createVersionedCache } from '../domain/model/versioned-cache.ts'
import { phoneRow } from './engine/sealing.ts'
import { loadEventIds } from './event-ids.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import { logLists, typeLists } from './sqlite/list-numbers.ts'
import { createEntryLists, removeFromList } from './list-changes.ts'
import { createListSources, inOrder, loadListed } from './list-reads.ts'
import { createEventAppending, type AppendNeeds } from './event-appending.ts'
import { createEventLocator } from './event-positions.ts'
import { onlyOwn, ownerShortId, pageOf, type OwnerShortId } from './ownership.ts'

/** Creates the store of the event log. */
export function createEventStore(connection: Connection, needs: AppendNeeds): EventStore {
  const { database, executor, sealing } = connection
  const { events, counters } = database.tables
  const { payload: _payload, ...columns } = getTableColumns(events)

  const findCounter = prepareFind(connection, counters, 'name')
  async function newestSeq(): Promise<number> {
    const counter = await findCounter({ name: 'event_seq' })
    if (!counter) throw new Error('the counter of log entries is missing')
    return counter.value
  }
  type PageFilter = OwnerShortId & Omit<LogQuery, 'appId' | 'types'> & { type: LogType | undefined }
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ type, limit, beforeSeq, afterSeq, environment, ...owner }: FilterPlaceholders<PageFilter>) => {
      const isListed = and(
        type && eq(events.type, type),
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
  async function toEntries(rows: readonly Row[]): Promise<LogEntry[]> {
    const newIds = (await loadEventIds(connection)).encodeAll(rows)
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
  async function loadPage(developerId: string, { appId, types: all, ...query }: LogQuery) {
    const owner = { developerId, appId }
    const { environment } = query
    if (appId !== undefined && environment !== undefined && (await findEnvironment(appId)) !== environment)
      return []
    const isAscending = query.afterSeq !== undefined
    const filter = { ...query, ...ownerShortId(database, owner) }
    const types = all ?? [undefined]
    // Each of several queries sees other commits. A page with a new entry of one type could lack one of another type before
    // it, which a reader that continues after the page would never see; so it ends where all queries see the log.
    const newest = types.length > 1 ? await newestSeq() : Infinity
    if (!isAscending && newest < Infinity)
      filter.beforeSeq = Math.min(query.beforeSeq ?? Infinity, newest + 1)
    const pages = types.map((type) => listPage({ ...filter, type }))
    const rows = onlyOwn((await Promise.all(pages)).flat(), owner) ?? []
    const sorted = rows
      .filter(({ seq }) => seq <= newest)
      .toSorted((a, b) => (isAscending ? a.seq - b.seq : b.seq - a.seq))
    return toEntries(sorted.slice(0, query.limit))
  }

  const isInTransaction = executor !== database.read
  // Only committed entries are kept: the number of one that is rolled back is used again.
  const openedEntries = isInTransaction || !database.sqlite ? undefined : createOpenedEntries(database.sqlite)

  /** Loads entries on SQLite. */
  const loadEntries = async (seqs: readonly number[]) =>
    toEntries(await listSeqs({ seqs: JSON.stringify(seqs) }))

  return {
    ...createEventAppending(connection, changeEntryLists, needs),

    async list(developerId, query) {
      const lists = database.sqlite?.lists
      if (!lists || !findSources) return loadPage(developerId, query)
      const { appId, environment, types, limit, beforeSeq, afterSeq } = query
      const filter = types && [...new Set(types)].map((type) => typeLists[type])
      const sources = findSources({ developerId, appId, environment }, filter)
      const range = afterSeq === undefined ? { before: beforeSeq } : { after: afterSeq }
      // The newest entries are read again and again, older ones seldom.
      const kept = beforeSeq === undefined ? openedEntries : undefined
      return loadListed(lists, sources, range, limit, async (seqs: number[]) => {
        const entries = kept
          ? await kept.get(seqs, loadEntries)
          : inOrder(seqs, await loadEntries(seqs), ({ seq }) => seq)
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
      const ids = await loadEventIds(connection)
      const decoded = ids.decode(id)
      const { seq, at, developerId: owner } = events
      const [row] = await executor
        .select({ seq, at, owner })
        .from(events)
        .where(decoded ? eq(seq, decoded.seq) : eq(events.id, id))
      if (row) return row.owner === developerId && row.at === (decoded?.at ?? row.at) ? row.seq : undefined
      // Retention deletes the entry that a reader of a quiet log has as its last one. Numbers must not be guessed.
      if (!decoded || ids.isPlain(decoded.seq)) return undefined
      return decoded.seq <= (await newestSeq()) ? decoded.seq : undefined
    },

    async deleteOldest(until, batchSize) {
      if (await database.postgres?.partitions.dropOldest(executor, 'events', until)) return true
      const { seq, developerId, appId, at } = events
      const returned = { seq, type: columns.type, developerId, appId }
      const deleted = await deleteOldestByKey(executor, { key: seq, at }, { until, batchSize }, returned)
      for (const row of deleted) changeEntryLists(removeFromList, row)
      database.sqlite?.log.increment()
      return deleted.length > 0
    },
  }
}

/** About one megabyte. */
const entriesMax = 2_000

/**
 * Keeps log entries that were read, with their phones opened, in memory only: the newest page is read again and again.
 * The caller gets the same object each time. All are dropped when any process deletes entries or replaces a phone.
 */
export function createOpenedEntries({ log, refresh }: Pick<SqliteState, 'log' | 'refresh'>) {
  const entries = createVersionedCache<LogEntry>(entriesMax)

  return {
    /**
     * Returns entries in the order of their numbers; undefined for a number without an entry.
     *
     * @param load loads those that are not kept
     */
    async get(
      seqs: readonly number[],
      load: (missing: readonly number[]) => Promise<LogEntry[]>,
    ): Promise<Array<LogEntry | undefined>> {
      refresh()
      const version = log.current()
      const kept = seqs.map((seq) => entries.get(`${seq}`, version))
      const missing = seqs.filter((_, index) => kept[index] === undefined)
      if (missing.length === 0) return kept
      const loaded = await load(missing)
      for (const entry of loaded) {
        if (entry.phone !== unreadablePhone) entries.set(`${entry.seq}`, version, entry)
      }
      const found = inOrder(missing, loaded, ({ seq }) => seq)
      let next = 0
      return kept.map((entry) => entry ?? found[next++])
    },
  }
}
