import { encodeEventId } from '../../domain/model/event-ids.ts'
import type { Tables } from './tables.ts'

/** The id of a log entry is made of its time and number; those of before that was so have one in a column. */
export const resolveEventId = (oldId: string | null, at: number, seq: number) =>
  oldId ?? encodeEventId(at, seq)

/** What `entryId` asks for, among the columns of other tables. */
export const eventIdColumns = ({ id, at, seq }: Tables['events']) => ({
  oldEventId: id,
  eventAt: at,
  eventSeq: seq,
})

type EventIdColumns = { oldEventId: string | null; eventAt: number; eventSeq: number }

/** The row with the id in place of `eventIdColumns`. */
export function withEventId<R extends EventIdColumns>({ oldEventId, eventAt, eventSeq, ...row }: R) {
  return { ...row, eventId: resolveEventId(oldEventId, eventAt, eventSeq) }
}
