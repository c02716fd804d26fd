/** Queries for the repair of stored times after the system clock was set back. */
export type DeadlineStore = {
  /** Finds the latest time at which a pending code was sent or sessions were ended; undefined if there is none. */
  latestTimestamp(now: number): Promise<number | undefined>
  /** Moves pending deadlines earlier by `rollbackMs`, and clamps the start of sessions and setup tokens to `now`. */
  shiftDeadlines(rollbackMs: number, now: number): Promise<void>
}
