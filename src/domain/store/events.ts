import type { LogType } from '../../shared/event-kinds.ts'
import type { LogEntry } from '../model/log-entry.ts'
import type { LogPosition } from '../model/request-history.ts'
import type { NewEvent } from './operation.ts'
import type { Environment } from '../../shared/otp-values.ts'
import type { DeleteOldest } from './delete-oldest.ts'

export type LogQuery = {
  appId?: string | undefined
  /** Only entries of applications in this environment. */
  environment?: Environment | undefined
  /** Only entries of these types. */
  types?: readonly LogType[] | undefined
  limit: number
  /** Only entries before this one. */
  beforeSeq?: number | undefined
  /** Only entries after this one, oldest first. */
  afterSeq?: number | undefined
}

/** A log entry to append; most have more of `NewEvent`. */
export type EntryToAppend = Pick<NewEvent, 'entry'> & Partial<NewEvent>

export type EventStore = {
  /**
   * Allocates sequence numbers for entries that the transaction will append.
   *
   * @returns the first; undefined on PostgreSQL, where others would wait for the counter until the commit
   */
  reserve(count: number): number | undefined
  /**
   * Locks the endpoints that get deliveries, on PostgreSQL. Later they would wait, and with them every call that needs a
   * counter.
   */
  lockEndpoints(events: readonly EntryToAppend[]): void
  /**
   * Allocates the next sequence numbers and inserts the entries, their deliveries and inbox messages. Takes a lock until
   * commit, so that entries become visible in the order of their numbers.
   *
   * @param reserved what `reserve` returned for as many
   * @returns the sequence number of the first, for rows of this transaction that refer to it: on PostgreSQL it is counted
   *   from the last one, 0 and below, as the number itself is only known to the server
   */
  append(events: readonly EntryToAppend[], reserved?: number): Promise<number>
  /** Lists newest first, or oldest first with `afterSeq`. */
  list(developerId: string, query: LogQuery): Promise<LogEntry[]>
  /**
   * Finds the ids and numbers of log entries of a request by their positions in its history, in that order. Undefined for an
   * entry that the log no longer has.
   */
  locate(
    request: { id: string; appId: string },
    positions: ReadonlyArray<LogPosition & { type: LogEntry['type'] }>,
  ): Promise<Array<Pick<LogEntry, 'id' | 'seq'> | undefined>>
  /** Returns the number of the newest entry; entries of a number up to that are committed, or were deleted. */
  newestSeq(): Promise<number>
  /** Lists the developers that have entries after one number, up to another. */
  listDevelopers(afterSeq: number, upToSeq: number): Promise<string[]>
  /** Finds the number of an entry of a developer by its id, or of one that was deleted. Undefined for any other id. */
  findSeq(developerId: string, id: string): Promise<number | undefined>
  deleteOldest: DeleteOldest
}
