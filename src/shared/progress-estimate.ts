import type { ProgressStep } from './progress.ts'

/** Progress of long work whose steps name their shares. */
export type ProgressEstimate = {
  step: string
  percent: number
  /** Null until enough is done to tell. */
  remainingMs: number | null
}

/** A step that takes longer than was expected is not called done. */
const unendedShareMax = 0.95

/**
 * Creates the estimate of the whole work from its steps. A step that does not tell how far it is counts as if it were as fast
 * as the steps before it.
 *
 * @param now milliseconds of a monotonic clock
 * @param fileSize returns the size of a file that a step writes, or null
 */
export function createEstimate(now: () => number, fileSize: (path: string) => number | null) {
  let current: ProgressStep | undefined
  let startedAt = 0
  let stepStartedAt = 0
  /** Share of what was done before, such as the copy of an interrupted upgrade. */
  let skipped = 0

  const shareOfStep = (step: ProgressStep, size: number) => {
    const done = step.file === undefined ? (step.done ?? null) : fileSize(step.file)
    if (done !== null && step.total) return done / step.total
    const shareBefore = (step.share?.from ?? 0) - skipped
    if (shareBefore <= 0) return 0
    return (now() - stepStartedAt) / ((size * (stepStartedAt - startedAt)) / shareBefore)
  }

  return {
    onStep(step: ProgressStep): void {
      if (current === undefined) {
        startedAt = now()
        skipped = step.share?.from ?? 0
      }
      if (step.step !== current?.step) stepStartedAt = now()
      current = step
    },
    /** Returns undefined if the step at hand names no share. */
    read(): ProgressEstimate | undefined {
      if (!current?.share) return undefined
      const { from, to } = current.share
      const size = to - from
      const share = from + size * Math.min(unendedShareMax, shareOfStep(current, size))
      const done = share - skipped
      const remainingMs = done <= 0 ? null : ((now() - startedAt) * (1 - share)) / done
      return { step: current.step, percent: Math.floor(100 * share), remainingMs }
    },
  }
}
