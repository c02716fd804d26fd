/** A step of long work, such as `copying the database`. */
export type ProgressStep = {
  step: string
  /** How far it is, in `unit`; left out if that is unknown. */
  done?: number
  total?: number
  unit?: 'bytes' | 'rows' | 'entries' | 'indexes'
  /** File that grows to `total` bytes: it tells how far a step is that does not return before its end. */
  file?: string
  /** Part of the whole work that the step is, from 0 to 1; left out if the whole is not known. */
  share?: { from: number; to: number }
}

/** Called when a step begins, and again while it goes on. It returns at once. */
export type OnStep = (step: ProgressStep) => void
