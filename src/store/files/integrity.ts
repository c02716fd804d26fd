import { Worker } from 'node:worker_threads'
import { dayMs, minuteMs } from '../../shared/durations.ts'
import type { TableCheck } from './integrity-worker.ts'

type IntegrityLog = { error(msg: string, fields?: Record<string, unknown>): void; info(msg: string): void }

export type IntegrityOptions = {
  /** Check at once, and log that the database is intact. */
  afterUncleanStop: boolean
  /** A part of the write-ahead log was lost. */
  hasDamagedLog: boolean
  /** How long to leave the disk to the start of the server, otherwise. */
  firstAfterMs?: number
}

/**
 * Checks the database for damage after each start and once a day.
 *
 * @returns a function that stops the checks
 */
export function startIntegrityChecks(path: string, log: IntegrityLog, options: IntegrityOptions): () => void {
  const { afterUncleanStop, hasDamagedLog, firstAfterMs = minuteMs } = options
  let stopCheck = () => {}
  const check = (intactMessage?: string) => (stopCheck = checkIntegrity(path, log, { intactMessage }))
  const lost = hasDamagedLog ? ', but for changes in the damaged write-ahead log' : ''
  if (afterUncleanStop) check(`the database is intact after the unclean stop${lost}`)
  const first = afterUncleanStop ? undefined : setTimeout(() => check(), firstAfterMs)
  const daily = setInterval(() => check(), dayMs)
  return () => {
    clearTimeout(first)
    clearInterval(daily)
    stopCheck()
  }
}

/**
 * Checks the database for damage, table by table: SQLite recovers from a crash by itself, but not from disk corruption.
 * Runs in a worker thread, because reading a large table takes seconds and would delay requests. The write-ahead log
 * grows while it runs, as during a backup.
 *
 * @param options.intactMessage logged if there is no damage
 * @param options.onEnd called when no more results will be logged
 * @returns a function that stops the check. The write-ahead log then stays, so that the next start checks again
 */
export function checkIntegrity(
  path: string,
  log: IntegrityLog,
  { intactMessage, onEnd = () => {} }: { intactMessage?: string | undefined; onEnd?: () => void } = {},
): () => void {
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
    if (isIntact && !isStopped && intactMessage !== undefined) log.info(intactMessage)
    onEnd()
  })
  return () => {
    isStopped = true
    // Not awaited: the thread stops only after its current table, and the process can exit before that.
    void worker.terminate()
  }
}
