import type { NewLogEntry } from '../domain/model/log-entry.ts'
import { columnsOf, insertInto } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

/**
 * The number of an entry that is appended by the open transaction on PostgreSQL.
 *
 * @param offset of the entry to the last one of those that were appended together; 0 for that one, -1 for the one before
 */
export const afterLastSeq = (offset: string) =>
  `(select value from counters where name = 'event_seq') + ${offset}`

/** An entry to insert, with the number and id that it gets. */
export type NewEventRow = NewLogEntry & { seq: number; id: string | null; payload: string | null }

/** Writes an insert of entries; phone and payload are encrypted. */
export const insertEvents = ({ events }: Pick<Tables, 'events'>, sealing: Sealing) =>
  insertInto(
    columnsOf<typeof events, NewEventRow>(events, {
      phone: (entry) => sealing.sealPhone('otp_requests.phone', phoneRow(entry), entry.phone),
      payload: (entry) => sealing.sealText('events.payload', payloadRow(entry), entry.payload),
    }),
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
