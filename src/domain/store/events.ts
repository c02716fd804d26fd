import type { LogType } from '../../shared/event-kinds.ts'
import type { NewLogEntry, LogEntry } from '../model/log-entry.ts'

export type LogQuery = {
  appId?: string | undefined
  /** Only entries of these types. */
  types?: readonly LogType[] | undefined
  limit: number
  /** Only entries before this one. */
  beforeSeq?: number | undefined
  /** Only entries after this one, oldest first. */
  afterSeq?: number | undefined
  /** The lowest number. */
  fromSeq?: number | undefined
  /** The highest number. */
  untilSeq?: number | undefined
}

export type EventStore = {
  /**
   * Allocates the next sequence number, which determines the id, and inserts the entry. Takes a lock until commit.
   *
   * @param toPayload builds the webhook body; omitted if no webhook is sent
   * @returns the sequence number
   */
  insert(entry: NewLogEntry, toPayload?: (id: string) => string): Promise<number>
  /** Lists newest first, or oldest first with `afterSeq`. */
  list(developerId: string, query: LogQuery): Promise<LogEntry[]>
  findSeq(developerId: string, id: string): Promise<number | undefined>
  /** Deletes a batch of the oldest entries up to a time. @returns true if there may be more */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
