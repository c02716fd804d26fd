import { statSync, writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { ProgressStep } from '../../src/shared/progress.ts'
import { createEstimate } from '../../src/shared/progress-estimate.ts'
import { drawnWord, lockState, lockWord, type ProgressView } from './progress-view.ts'
import { formatEstimate, formatProgress } from './progress-text.ts'

// Draws progress in a thread of its own: SQLite copies and checks a database in one call, for minutes, in which the main
// thread runs no timer.

const barEveryMs = 200
/** Shorter work shows no bar. */
const quietMs = 500

type WorkerInput = { view: ProgressView; shared: SharedArrayBuffer }

function drawSteps({ view, shared }: WorkerInput) {
  const words = new Int32Array(shared)
  let current: ProgressStep | undefined
  let startedAt = performance.now()
  const estimate = createEstimate(() => performance.now(), fileSize)
  const begunAt = performance.now()

  parentPort?.on('message', (step: ProgressStep) => {
    estimate.onStep(step)
    if (step.step !== current?.step) startedAt = performance.now()
    current = step
  })

  const draw = () => {
    const now = performance.now()
    if (current === undefined || now - begunAt < quietMs) return
    const { step, unit, total = null } = current
    const done = current.file === undefined ? (current.done ?? null) : fileSize(current.file)
    const state = { step, done, total, elapsedMs: now - startedAt, ...(unit && { unit }) }
    if (Atomics.compareExchange(words, lockWord, lockState.free, lockState.drawing) !== lockState.free) return
    const overall = estimate.read()
    const text = overall ? formatEstimate(overall, view.columns) : formatProgress(state, view.columns)
    write(view.columns === null ? `${text}\n` : `\r\u001b[K${text}`)
    Atomics.store(words, drawnWord, 1)
    Atomics.store(words, lockWord, lockState.free)
    Atomics.notify(words, lockWord)
  }
  setInterval(draw, view.columns === null ? view.lineEveryMs : barEveryMs)
}

function fileSize(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null
}

/** A terminal that cannot take the line now gets the next one. */
function write(text: string) {
  try {
    writeSync(2, text)
  } catch {
    // Nothing is lost: the next line says more.
  }
}

drawSteps(workerData)
