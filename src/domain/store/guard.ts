import type { GuardCounts, GuardCountry, GuardDecisions } from '../model/guard.ts'
import type { Awaitable } from '../model/awaitable.ts'

/**
 * Rows that a call of the guard changed, as they are after it, by their keys: the subject of a country, the day and the
 * subject of counts (`toCountsKey`), a context with the UTC day of its last verification. Decisions are added to those
 * in the table.
 */
export type GuardChanges = {
  countries: Map<string, GuardCountry>
  counts: Map<string, GuardCounts>
  contexts: Map<string, number>
  decisions: Map<string, GuardDecisions & { hour: number }>
}

/**
 * Reads rows by their keys. Rows that a caller may change are locked until the transaction ends, also if they do not
 * exist yet. Lock order: the country, then counts in the order of `locked`.
 */
export type GuardRows = {
  /** Reads a country's row and locks it. */
  country(subject: string): Awaitable<GuardCountry | undefined>
  /** Reads rows of counts, and locks the first ones. */
  counts(locked: readonly string[], others: readonly string[]): Awaitable<ReadonlyMap<string, GuardCounts>>
  /** Reads the UTC days on which contexts or networks last verified a phone. */
  contexts(contexts: readonly string[]): Awaitable<ReadonlyMap<string, number>>
}

/** Stores unverified and verified messages. Prefixes and networks appear only as keyed hashes. */
export type GuardStore = GuardRows & {
  /**
   * Writes rows whole, and adds decisions, in the order of their keys. The caller has read the rows in this transaction.
   *
   * @throws GuardFault
   */
  apply(changes: GuardChanges): Promise<void>
  /** Lists the countries whose alert lasts beyond a time. */
  alerts(after: number): Promise<Array<{ subject: string; alertUntil: number }>>

  /** Lists the keys of contexts, or of counts, after one, in their order. */
  listKeys(table: 'contexts' | 'counts', after: string, limit: number): Promise<string[]>
  /** Moves a row to another key, and adds it to the row that is there. */
  moveKey(table: 'contexts' | 'counts', from: string, to: string): Promise<void>

  /** Lists the decisions since an hour, in hours since the epoch. */
  decisions(fromHour: number): Promise<GuardDecisions[]>
  /**
   * Deletes about `batchSize` rows of each kind that no rule uses any more.
   *
   * @returns false when none was left
   */
  deleteOldest(now: number, batchSize: number): Promise<boolean>
}
