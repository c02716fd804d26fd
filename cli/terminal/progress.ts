import type { OnStep, ProgressStep } from '../../src/shared/progress.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'

const lineEveryMs = 10_000

/**
 * Shows the progress of long work on stderr: a bar on a terminal, otherwise a line every 10 s; with --json an object
 * when a step begins.
 */
export function createProgress({ io, output }: { io: Io; output: Output }) {
  const view = { columns: io.stderrIsTerminal ? (io.columns?.() ?? 80) : null, lineEveryMs }
  let drawing: ReturnType<NonNullable<Io['drawProgress']>> | undefined
  let lastStep = ''

  const onStep: OnStep = (step: ProgressStep) => {
    if (output.json) {
      const { file: _, share: _share, ...shown } = step
      if (step.step !== lastStep) io.writeError(`${JSON.stringify(shown)}\n`)
    } else if (output.isForPeople) (drawing ??= io.drawProgress?.(view))?.show(step)
    lastStep = step.step
  }
  return {
    onStep,
    /** Removes the bar, so that the result has its place. Call it before anything else is printed. */
    end: () => drawing?.end(),
  }
}

/** Runs long work and shows its progress until it ends. */
export async function withProgress<T>(
  context: { io: Io; output: Output },
  work: (onStep: OnStep) => Promise<T>,
): Promise<T> {
  const progress = createProgress(context)
  try {
    return await work(progress.onStep)
  } finally {
    progress.end()
  }
}
