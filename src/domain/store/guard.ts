import type { GuardCounts, GuardCountry, GuardDecisions, GuardRule } from '../model/guard.ts'

/**
 * Counts unverified and verified messages. Prefixes and networks appear only as keyed hashes.
 *
 * Lock order: the country, then `addUnverified` or `adjust` with its subjects in the order of their names.
 */
export type GuardStore = {
  /** Reads a country's counts and locks them until the transaction ends. */
  lockCountry(subject: string): Promise<GuardCountry>
  putCountry(subject: string, day: number, country: GuardCountry): Promise<void>
  /** Lists the countries whose alert lasts beyond a time. */
  alerts(after: number): Promise<Array<{ subject: string; alertUntil: number }>>

  /** Counts one more unverified message for each subject. @returns the counts with it, by subject */
  addUnverified(subjects: readonly string[], day: number, at: number): Promise<Map<string, GuardCounts>>
  counts(subjects: readonly string[], day: number): Promise<Map<string, GuardCounts>>
  /**
   * Subtracts messages from the unverified ones, not below 0, and adds verified codes.
   *
   * @param at time of the messages
   * @returns the unverified messages that remain, by subject; without those that have no counts that day
   */
  adjust(
    subjects: readonly string[],
    day: number,
    at: number,
    change: { messages: number; verified: number },
  ): Promise<Map<string, number>>
  /**
   * Counts a message against the daily cap if fewer than `max` were sent, in one conditional statement.
   *
   * @returns the new count; undefined if the message was not counted
   */
  addSent(day: number, max: number): Promise<number | undefined>

  /** Tells whether one of at most two contexts or networks verified a phone since a day. */
  hasVerified(contexts: readonly string[], sinceDay: number): Promise<boolean>
  addContexts(contexts: readonly string[], day: number): Promise<void>

  /** Lists the keys of contexts, or of counts, after one, in their order. */
  listKeys(table: 'contexts' | 'counts', after: string, limit: number): Promise<string[]>
  /** Moves a row to another key, and adds it to the row that is there. */
  moveKey(table: 'contexts' | 'counts', from: string, to: string): Promise<void>

  addDecision(decision: { hour: number; rule: GuardRule; country: string; blocked: boolean }): Promise<void>
  /** Lists the decisions since an hour, in hours since the epoch. */
  decisions(fromHour: number): Promise<GuardDecisions[]>
  /**
   * Deletes about `batchSize` rows of each kind that no rule uses any more.
   *
   * @returns false when none was left
   */
  deleteOldest(now: number, batchSize: number): Promise<boolean>
}
