import type { NewAdmission, RateLimit, StoredPolicy, Usage } from '../model/rate-limit.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** The sliding-window log of admissions: in memory on SQLite, rows on PostgreSQL. */
export type RateLimitStore = {
  /** Measures a limit in the window that ends at a time. Changes nothing. */
  usage(limit: RateLimit<StoredPolicy>, now: number): Promise<Usage>
  insert(admissions: readonly NewAdmission[]): void
  /** Deletes a subject's admissions under every policy. @returns how many */
  forget(subject: string): Promise<number>
  /** Finds the time of the newest admission of all. */
  latestTimestamp(): Promise<number | undefined>
  /** Moves admissions of all subjects that are later than `now` back to `now`. */
  clampToNow(now: number): Promise<void>
  /** Deletes admissions of any subject. */
  deleteOldest: DeleteOldest
}
