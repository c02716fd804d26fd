import type { IdempotencyScope } from '../model/idempotency.ts'

export type IdempotencyRecord = { bodyHash: string; answer: string | null }

export type IdempotencyStore = {
  /**
   * Claims the key for this call. Of several concurrent calls exactly one succeeds.
   *
   * @param expiredBefore a record from before this time counts as absent
   * @returns undefined when this call now holds the key, otherwise the earlier call's record
   */
  claim(scope: IdempotencyScope, now: number, expiredBefore: number): Promise<IdempotencyRecord | undefined>
  finish(scope: IdempotencyScope, result: string): Promise<void>
  /** Gives back the key that this call claimed. */
  release(scope: IdempotencyScope): Promise<void>
  /** Deletes about `batchSize` of the oldest records, up to `until`. @returns false when none was left */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}
