import type { NewLogEntry } from '../domain/model/log-entry.ts'
import type { Database } from './engine/database.ts'
import { addOnConflict, insertInto } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'

/** Adds to counters, also to those that do not exist yet. */
export const addToCounters = insertInto<{ name: string; value: number }>(
  'counters',
  { name: ({ name }) => name, value: ({ value }) => value },
  { onConflict: addOnConflict('counters', ['name'], ['value']) },
)

/**
 * The number of an entry that is appended by the open transaction on PostgreSQL.
 *
 * @param offset of the entry to the last one of those that were appended together; 0 for that one, -1 for the one before
 */
export const afterLastSeq = (offset: string) =>
  `(select value from counters where name = 'event_seq') + ${offset}`

/** An entry to insert. */
export type NewEventRow = { seq: number; id: string | null; entry: NewLogEntry; payload: string | null }

/** Writes an insert of entries; phone and payload are encrypted. */
export const insertEvents = ({ shortId }: Pick<Database, 'shortId'>, sealing: Sealing) =>
  insertInto<NewEventRow>(
    'events',
    {
      seq: ({ seq }) => seq,
      id: ({ id }) => id,
      type: ({ entry }) => entry.type,
      developer_id: ({ entry }) => shortId(entry.developerId),
      app_id: ({ entry }) => entry.appId && shortId(entry.appId),
      request_id: ({ entry }) => entry.requestId,
      phone: ({ entry }) => sealing.sealPhone('otp_requests.phone', phoneRow(entry), entry.phone),
      status: ({ entry }) => entry.status,
      detail: ({ entry }) => entry.detail,
      payload: ({ entry, payload }) => sealing.sealText('events.payload', payloadRow(entry), payload),
      at: ({ entry }) => entry.at,
    },
    { computed: { seq: afterLastSeq('given.seq') } },
  )

/**
 * Names the row of an entry's phone in the associated data: that of its request, so that both hold the same value. Entries
 * without a request do not share theirs, which would show that they are of one number.
 */
export const phoneRow = ({ requestId, at }: { requestId: string | null; at: number }) => requestId ?? `${at}`

/** Names an entry in the associated data of its sealed payload. */
export const payloadRow = ({ requestId, type, at }: { requestId: string | null; type: string; at: number }) =>
  `${requestId ?? ''} ${type} ${at}`
