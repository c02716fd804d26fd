/** What is stored to happen, or to end, at a time to come. */
export type DeadlineStore = {
  /** When the newest was set of the codes and admissions that count after `now`; undefined where none does. */
  latestTimestamp(now: number): Promise<number | undefined>
  /** Everything that waits does so for that much less; what was set after `now` was set then. */
  shiftDeadlines(rollbackMs: number, now: number): Promise<void>
}

/** Less than this is not worth it: nothing that waits is promised to the second. */
export const clockRollbackMinMs = 5_000
