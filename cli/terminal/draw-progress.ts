import { writeSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { ProgressStep } from '../../src/shared/progress.ts'
import { drawnWord, lockState, lockWord, type ProgressView } from './progress-view.ts'

/** Draws steps in a worker thread until the end, also while this thread is busy. */
export function drawProgress(view: ProgressView) {
  const shared = new SharedArrayBuffer(8)
  const words = new Int32Array(shared)
  const worker = new Worker(new URL('./progress-worker.ts', import.meta.url), {
    workerData: { view, shared },
  })
  worker.unref()
  // Work goes on without a bar.
  worker.on('error', () => {})
  let isEnded = false

  return {
    show(step: ProgressStep) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- exists for windows only
      worker.postMessage(step)
    },
    end() {
      if (isEnded) return
      isEnded = true
      // Waits for a line that is being written, so that nothing is drawn over what follows.
      while (Atomics.compareExchange(words, lockWord, lockState.free, lockState.ended) === lockState.drawing)
        Atomics.wait(words, lockWord, lockState.drawing, 100)
      if (view.columns !== null && Atomics.load(words, drawnWord) === 1) writeSync(2, '\r\u001b[K')
      void worker.terminate()
    },
  }
}
