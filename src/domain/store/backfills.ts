import type { Purpose } from '../model/keys.ts'

/** How far a backfill has come. */
export type BackfillState = {
  backfill: string
  /** Version of the key that the backfill brings rows to. */
  version: number
  /** Last row that was seen; null once the backfill has ended. */
  position: string | null
}

export type BackfillStore = {
  list(): Promise<BackfillState[]>
  /** Returns how far a backfill has come, and locks it until the transaction ends, so that nodes take its steps in turn. */
  lock(backfill: string, version: number): Promise<BackfillState>
  put(state: BackfillState): Promise<void>
  /** Deletes the versions of a data key before one. @returns whether there were any */
  deleteVersionsBefore(purpose: Purpose, version: number): Promise<boolean>
}
