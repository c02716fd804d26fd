import type { GuardUsage, GuardRule, GuardDecisions } from '../model/guard.ts'

/**
 * Unverified and verified messages, counted per subject and window. Subjects reveal neither phones nor
 * addresses.
 */
export type GuardStore = {
  /**
   * Usage of up to three subjects, in windows that start after the given times. Omits subjects without
   * counts.
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

  /** Countries that the address sent to after a time, and whether it verified a code of theirs after it. */
  addressCountries(subject: string, after: number): Promise<Array<{ country: string; verified: boolean }>>
  addAddressCountry(subject: string, country: string, at: number): Promise<void>
  verifyAddressCountry(subject: string, country: string, at: number): Promise<void>

  /** The most codes verified on any one day since `fromDay`. */
  maxVerifiedInDay(subject: string, fromDay: number): Promise<number>
  addVerified(subject: string, day: number): Promise<void>
  sentOn(subject: string, day: number): Promise<number>
  /**
   * Counts a message if fewer than `max` were sent, in one guarded statement.
   *
   * @returns the new count; undefined if the message was not counted
   */
  addSent(subject: string, day: number, max: number): Promise<number | undefined>

  addDecision(decision: { hour: number; rule: GuardRule; country: string; blocked: boolean }): Promise<void>
  /** Decisions since an hour. */
  decisions(fromHour: number): Promise<GuardDecisions[]>
  /**
   * Deletes about `batchSize` rows of each kind that no rule uses any more.
   *
   * @returns false when none was left
   */
  deleteOldest(now: number, batchSize: number): Promise<boolean>
}
