import type { Purpose } from '../model/keys.ts'

/** How far a walk has come. */
export type KeyWalkState = {
  walk: string
  /** Version of the key that the walk brings rows to. */
  version: number
  /** Last row that was seen; null once the walk has ended. */
  position: string | null
}

export type KeyWalkStore = {
  list(): Promise<KeyWalkState[]>
  put(state: KeyWalkState): Promise<void>
  /** Deletes the versions of a data key before one. @returns whether there were any */
  deleteVersionsBefore(purpose: Purpose, version: number): Promise<boolean>
}
