import type { GuardUsage, GuardRule, GuardDecisions } from '../model/guard.ts'

/**
 * Counts unverified and verified messages per subject and window. A subject contains phone prefixes
 * and addresses only as keyed hashes.
 */
export type GuardStore = {
  /**
   * Reads the usage of up to three subjects, in windows that start after the given times. Omits subjects
   * without counts.
   */
  usage(subjects: readonly string[], after: { hour: number; day: number }): Promise<Map<string, GuardUsage>>
  /** Counts one more unverified message for each subject. */
  addUnverified(subjects: readonly string[], startsAt: number): Promise<void>
  /**
   * Subtracts messages from the unverified ones of a window, not below 0, and adds verified codes.
   *
   * @returns whether any of the subjects has counts in that window
   */
  adjustCounts(
    subjects: readonly string[],
    startsAt: number,
    change: { messages: number; verified: number },
  ): Promise<boolean>

  /** Lists the countries that an address sent to after a time, and whether it has verified a code there since. */
  addressCountries(subject: string, after: number): Promise<Array<{ country: string; verified: boolean }>>
  addAddressCountry(subject: string, country: string, at: number): Promise<void>
  verifyAddressCountry(subject: string, country: string, at: number): Promise<void>

  /** Returns the highest number of codes verified on one day since `fromDay`. */
  maxVerifiedInDay(subject: string, fromDay: number): Promise<number>
  addVerified(subject: string, day: number): Promise<void>
  sentOn(subject: string, day: number): Promise<number>
  /**
   * Counts a message if fewer than `max` were sent, in one conditional statement.
   *
   * @returns the new count; undefined if the message was not counted
   */
  addSent(subject: string, day: number, max: number): Promise<number | undefined>

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
