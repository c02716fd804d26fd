import type { Admission, NewAdmission, StoredPolicy } from '../model/rate-limit.ts'
import type { Awaitable } from '../model/awaitable.ts'

/** The sliding-window log of admissions: in memory on SQLite, rows on PostgreSQL. */
export type RateLimitStore = {
  /** Finds the newest admission up to `until`. */
  newest(subject: string, policy: StoredPolicy, until: number): Awaitable<Admission | undefined>
  /** Finds the oldest admission later than `after`, or the one that is `skip` places newer. */
  oldestAfter(
    subject: string,
    policy: StoredPolicy,
    after: number,
    skip: number,
  ): Awaitable<Admission | undefined>
  insert(admissions: readonly NewAdmission[]): Awaitable<void>
  /** Deletes a subject's admissions under every policy. @returns how many */
  forget(subject: string): Promise<number>
  /** Finds the time of the newest admission of all. */
  latestTimestamp(): Promise<number | undefined>
  /** Moves admissions of all subjects that are later than `now` back to `now`. */
  clampToNow(now: number): Promise<void>
  /**
   * Deletes about `batchSize` of the oldest admissions up to `until`, of any subject.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
