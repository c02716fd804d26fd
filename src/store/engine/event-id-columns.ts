import { eventIdOf } from '../../domain/model/event-ids.ts'
import type { Tables } from './tables.ts'

/** The id of a log entry is made of its time and number; those of before that was so have one in a column. */
export const entryId = (oldId: string | null, at: number, seq: number) => oldId ?? eventIdOf(at, seq)

/** What `entryId` asks for, among the columns of other tables. */
export const eventColumns = ({ id, at, seq }: Tables['events']) => ({
  oldEventId: id,
  eventAt: at,
  eventSeq: seq,
})

type EventColumns = { oldEventId: string | null; eventAt: number; eventSeq: number }

/** The row with the id in place of `eventColumns`. */
export function withEventId<R extends EventColumns>({ oldEventId, eventAt, eventSeq, ...row }: R) {
  return { ...row, eventId: entryId(oldEventId, eventAt, eventSeq) }
}
