import type { IdempotencyScope } from '../model/idempotency.ts'
import type { DeleteOldest } from './delete-oldest.ts'

/** A stored result. `answer` is null while the first call of a console route is in progress. */
export type IdempotencyRecord = { bodyHash: string; answer: string | null; createdAt: number }

export type IdempotencyStore = {
  /**
   * Claims the key for this call. Of several concurrent calls exactly one succeeds.
   *
   * @param expiredBefore a record from before this time counts as absent
   * @returns undefined when this call now holds the key, otherwise the earlier call's record
   */
  claim(scope: IdempotencyScope, now: number, expiredBefore: number): Promise<IdempotencyRecord | undefined>
  /** Saves the results of calls; each replaces an expired one or its own. */
  save(results: ReadonlyArray<{ scope: IdempotencyScope; answer: string; at: number }>): void
  finish(scope: IdempotencyScope, result: string): Promise<void>
  deleteOldest: DeleteOldest
}
