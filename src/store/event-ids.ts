import { inArray } from 'drizzle-orm'
import { createEventIds, type EventIds } from '../domain/model/event-ids.ts'
import type { Connection } from './engine/connection.ts'
import type { Database } from './engine/database.ts'
import { onTable } from './engine/on-table.ts'
import type { Tables } from './engine/tables.ts'

const idsByDatabase = new WeakMap<Database, EventIds>()

/** Returns the codec of event ids. Its key is read once per database, which creates it in a migration. */
export const loadEventIds = async (connection: Connection): Promise<EventIds> =>
  idsByDatabase.get(connection.database) ?? readEventIds(connection)

async function readEventIds({ database, executor }: Connection): Promise<EventIds> {
  const { meta } = database.tables
  const isNamed = inArray(meta.name, ['event_id_key', 'plain_event_ids_until'])
  const rows = await onTable(executor, meta).list(isNamed)
  const values = new Map(rows.map(({ name, value }) => [name, value]))
  const key = values.get('event_id_key')
  const plainUntil = values.get('plain_event_ids_until')
  if (key === undefined || plainUntil === undefined) throw new Error('the key of event ids is missing')
  const ids = createEventIds(Buffer.from(key, 'hex'), Number(plainUntil))
  idsByDatabase.set(database, ids)
  return ids
}

/** Columns that `withEventId` needs, under names that do not clash in a join. */
export const eventIdColumns = ({ id, at, seq }: Tables['events']) => ({
  oldEventId: id,
  eventAt: at,
  eventSeq: seq,
})

type EventIdColumns = { oldEventId: string | null; eventAt: number; eventSeq: number }

/** Replaces the columns of `eventIdColumns` in a row by `eventId`. Entries of the first schema have theirs in a column. */
export function withEventId<R extends EventIdColumns>(
  ids: EventIds,
  { oldEventId, eventAt, eventSeq, ...row }: R,
) {
  return { ...row, eventId: oldEventId ?? ids.encode(eventAt, eventSeq) }
}

/**
 * The number of an entry that is appended by the open transaction on PostgreSQL.
 *
 * @param offset of the entry to the last one of those that were appended together; 0 for that one, -1 for the one before
 */
export const afterLastSeq = (offset: string) =>
  `(select value from counters where name = 'event_seq') + ${offset}`
