import { Worker } from 'node:worker_threads'
import type { TableCheck } from './integrity-worker.ts'

type IntegrityLog = { error(msg: string, fields?: Record<string, unknown>): void; info(msg: string): void }

/**
 * Checks the database for damage, table by table, after an unclean stop: SQLite recovers from a crash by itself, but
 * not from disk corruption. Runs in a worker thread, because reading a large table takes seconds and would delay
 * requests. The write-ahead log grows while it runs, as during a backup.
 *
 * @param onEnd called when no more results will be logged
 * @returns a function that stops the check. The write-ahead log then stays, so that the next start checks again
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
    if (isIntact && !isStopped) log.info('the database is intact after the unclean stop')
    onEnd()
  })
  return () => {
    isStopped = true
    // Not awaited: the thread stops only after its current table, and the process can exit before that.
    void worker.terminate()
  }
}
