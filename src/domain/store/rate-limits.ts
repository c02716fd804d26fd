/**
 * `seq` numbers the admissions of a subject and policy, so that subtraction gives the number of admissions
 * between two of them.
 */
export type Admission = { at: number; seq: number }

export type RateLimitStore = {
  newest(subject: string, policy: string): Promise<Admission | undefined>
  /** Finds the oldest admission later than `after`, or the one that is `skip` places newer. */
  oldestAfter(subject: string, policy: string, after: number, skip: number): Promise<Admission | undefined>
  insert(subject: string, policy: string, admission: Admission): Promise<void>
  /** Deletes admissions up to `time`, which are outside every window. */
  deleteUntil(subject: string, policy: string, time: number): Promise<void>
  /** Deletes admissions after `time`, recorded by a clock that was wrong. */
  deleteAfter(subject: string, policy: string, time: number): Promise<void>
  /** Deletes a subject's admissions under every policy. @returns how many */
  deleteSubject(subject: string): Promise<number>
  /** Moves admissions of all subjects that are later than `now` back to `now`. */
  clampToNow(now: number): Promise<void>
  /**
   * Deletes about `batchSize` of the oldest admissions up to `until`, of any subject.
   *
   * @returns false when none was left
   */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
