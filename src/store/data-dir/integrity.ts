import { dayMs, minuteMs } from '../../shared/durations.ts'
import type { TableCheck } from './integrity-worker.ts'
import { systemWorld } from '../../world/system.ts'
import type { World } from '../../world/world.ts'

type IntegrityLog = { error(msg: string, fields?: Record<string, unknown>): void; info(msg: string): void }

type IntegrityOptions = {
  /** Check at once, and log that the database is intact. */
  afterUncleanStop: boolean
  /** A part of the write-ahead log was lost. */
  hasDamagedLog: boolean
  /** How long to leave the disk to the start of the server, otherwise. */
  firstAfterMs?: number
  /** The system's by default. */
  world?: World
}

/**
 * Checks the database for damage after each start and once a day.
 *
 * @returns a function that stops the checks
 */
export function startIntegrityChecks(path: string, log: IntegrityLog, options: IntegrityOptions): () => void {
  const { afterUncleanStop, hasDamagedLog, firstAfterMs = minuteMs, world = systemWorld } = options
  const { timers } = world
  let stopCheck = () => {}
  const check = (intactMessage?: string) => (stopCheck = checkIntegrity(path, log, { intactMessage, world }))
  const lost = hasDamagedLog ? ', but for changes in the damaged write-ahead log' : ''
  if (afterUncleanStop) check(`the database is intact after the unclean stop${lost}`)
  const first = afterUncleanStop ? undefined : timers.setTimeout(() => check(), firstAfterMs)
  const daily = timers.setInterval(() => check(), dayMs)
  return () => {
    timers.clearTimeout(first)
    timers.clearInterval(daily)
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
  {
    intactMessage,
    onEnd = () => {},
    world = systemWorld,
  }: { intactMessage?: string | undefined; onEnd?: () => void; world?: World } = {},
): () => void {
  const worker = world.startThread(new URL('./integrity-worker.ts', import.meta.url), path)
  worker.unref()
  let isIntact = true
  let isStopped = false
  worker.on('message', ({ table, result }: TableCheck) => {
    if (result === 'ok') return
    isIntact = false
    log.error('the database is damaged; restore a backup: otpd restore latest', { table })
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
