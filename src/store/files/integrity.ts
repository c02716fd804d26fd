import { Worker } from 'node:worker_threads'
import type { TableCheck } from './integrity-worker.ts'

type IntegrityLog = { error(msg: string, fields?: Record<string, unknown>): void; info(msg: string): void }

/**
 * Looks for damage table by table. For a start after an unclean stop: SQLite repairs what a crash leaves, and not what a
 * disk breaks. In a thread of its own, since a large table takes seconds to read from the disk, and every call would wait.
 * Meanwhile the write-ahead log grows, as it does beside a backup.
 *
 * @param onEnd told when nothing more will be reported
 * @returns ends it. The log of the database then stays, so that the next start looks anew
 */
export function checkIntegrity(path: string, log: IntegrityLog, onEnd = () => {}): () => void {
  const worker = new Worker(new URL('./integrity-worker.ts', import.meta.url), { workerData: path })
  worker.unref()
  let isIntact = true
  let isStopped = false
  worker.on('message', ({ table, result }: TableCheck) => {
    if (result === 'ok') return
    isIntact = false
    log.error('the database is damaged. Restore a backup.', { table })
  })
  worker.on('error', (error) => {
    isIntact = false
    log.error('the database could not be checked', { error })
  })
  worker.on('exit', () => {
    if (isIntact && !isStopped) log.info('the database is whole after the unclean stop')
    onEnd()
  })
  return () => {
    isStopped = true
    // Not waited for: the thread ends with its table only, and the process need not.
    void worker.terminate()
  }
}
