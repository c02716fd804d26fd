/** Where progress is drawn. */
export type ProgressView = {
  /** Width of the terminal; null for lines in a pipe. */
  columns: number | null
  /** Pause between two lines in a pipe. */
  lineEveryMs: number
}

// Memory that the thread of the command shares with the one that draws its progress.

/** Index of the word that says who may draw. */
export const lockWord = 0
/** Index of the word that is 1 once something was drawn. */
export const drawnWord = 1
/** Values of `lockWord`; once `ended`, nothing is drawn any more. */
export const lockState = { free: 0, drawing: 1, ended: 2 }
