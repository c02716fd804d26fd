import { eventIdOf } from '../domain/event-ids.ts'
import type { Tables } from './tables.ts'

/** What the id of a log entry is made of: its time and number, or, for those of before that was so, the id itself. */
export const eventColumns = ({ id, at, seq }: Tables['events']) => ({
  oldEventId: id,
  eventAt: at,
  eventSeq: seq,
})

type EventColumns = { oldEventId: string | null; eventAt: number; eventSeq: number }

/** The row with the id in place of `eventColumns`. */
export function withEventId<R extends EventColumns>({ oldEventId, eventAt, eventSeq, ...row }: R) {
  return { ...row, eventId: oldEventId ?? eventIdOf(eventAt, eventSeq) }
}
