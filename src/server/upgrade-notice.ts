import { Worker } from 'node:worker_threads'
import type { Config } from '../config/config.ts'
import type { OnStep } from '../shared/progress.ts'

/** Input of the thread that answers during an upgrade. */
export type UpgradeNoticeInput = Pick<Config, 'listen' | 'tls'> & { dataDir: string; logsJson: boolean }

/**
 * Reports an upgrade while it keeps this thread busy. A second thread answers on the port of the server with 503, logs, and writes
 * the progress for `otpd doctor`. It starts with the first step, so a start without an upgrade needs no second thread.
 */
export function createUpgradeNotice(config: Pick<Config, 'listen' | 'tls' | 'log'>, dataDir: string) {
  let worker: Worker | undefined
  const ended = Promise.withResolvers<void>()
  return {
    onStep: ((step) => {
      worker ??= startWorker(
        { listen: config.listen, tls: config.tls, dataDir, logsJson: config.log.format === 'json' },
        ended.resolve,
      )
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- exists for windows only
      worker.postMessage(step)
    }) satisfies OnStep,

    /** Resolves when the port is free again. */
    async end(): Promise<void> {
      if (!worker) return
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- exists for windows only
      worker.postMessage('end')
      await ended.promise
      await worker.terminate()
    },
  }
}

function startWorker(workerData: UpgradeNoticeInput, onEnd: () => void): Worker {
  const worker = new Worker(new URL('./upgrade-worker.ts', import.meta.url), { workerData })
  worker.unref()
  worker.on('message', onEnd)
  worker.on('exit', onEnd)
  // The upgrade goes on without it.
  worker.on('error', onEnd)
  return worker
}
