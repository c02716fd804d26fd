import { readLastBackup, type LastBackup } from '../backups/last-backup.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Log } from '../log/log.ts'
import { hourMs, isWithin, minuteMs } from '../shared/durations.ts'
import { isRecord, parseJson } from '../shared/json.ts'
import type { ServerMetrics } from './metrics.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'
import type { SpawnedProcess, World } from '../world/world.ts'

const checkMs = 10_000
/** Keeps many servers that start together from backing up together. */
const spreadMsMax = 5 * minuteMs
const retryMsMax = hourMs
/** Below the server, so that requests come first. */
const priority = 19

/**
 * Decides when a backup is due: `everyMs` after the last one, wherever that came from, with a random delay of at most five
 * minutes; at once if there is none. After a failure it is due again an hour later, or sooner if `everyMs` is shorter.
 *
 * @param needs.clock time of day, which outlives the process
 * @param needs.random between 0 and 1
 * @param needs.makeBackup throws if there is no backup
 * @returns makes a backup if one is due
 */
export function createBackupSchedule(needs: {
  everyMs: number
  clock: Clock
  random: () => number
  readLast: () => LastBackup | null
  makeBackup: () => Promise<void>
  onFailed: (error: unknown) => void
}): () => Promise<void> {
  const { everyMs, clock, random, readLast, makeBackup, onFailed } = needs
  const newDelay = () => random() * Math.min(spreadMsMax, everyMs / 10)
  let delayMs = newDelay()
  const waitFor = (ms: number) => ({ since: clock.now(), until: clock.now() + ms })
  let wait = waitFor(delayMs)
  return async () => {
    const now = clock.now()
    if (isWithin(wait, now)) return
    const last = readLast()
    // A time that has not come yet was taken while the clock was wrong.
    if (last && last.at <= now && now < last.at + everyMs + delayMs) return
    try {
      await makeBackup()
      delayMs = newDelay()
    } catch (error) {
      wait = waitFor(Math.min(everyMs, retryMsMax))
      onFailed(error)
    }
  }
}

/** Reason why a backup failed, as the command that makes it says it. */
class BackupFailed extends Error {
  override readonly name = 'BackupFailed'
  readonly fields: Record<string, unknown>

  constructor(fields: Record<string, unknown>) {
    super('backup failed')
    this.fields = fields
  }
}

/**
 * Starts the schedule of backups, if there is one. Each is made by another process, which runs `otpd backup --prune`: it
 * takes neither time nor memory from requests.
 *
 * @param needs.command starts this program
 */
export function startBackups(
  { backup: { everyMs }, configFile, dataDir }: Pick<Config, 'backup' | 'configFile' | 'dataDir'>,
  needs: {
    command: readonly string[] | undefined
    clock: Clock
    log: Log
    cleanups: Cleanups
    metrics: ServerMetrics
    world: World
  },
): void {
  const { command, clock, log, cleanups, metrics, world } = needs
  // The data of a development server is temporary: no directory is configured.
  if (everyMs === null || dataDir === null || !command) return
  const configFlag = configFile === null ? [] : ['--config', configFile]
  const commandLine = [...command, 'backup', '--prune', '--json', '--data-dir', dataDir, ...configFlag]
  let child: SpawnedProcess | undefined
  let isStopping = false

  async function makeBackup(): Promise<void> {
    const startedAt = world.monotonic()
    const started = world.spawn(commandLine)
    child = started
    try {
      world.setPriority(started.pid, priority)
    } catch {
      // It has ended already, or the system does not allow it.
    }
    const [stdout, stderr, exitCode] = await Promise.all([
      started.stdout.text(),
      started.stderr.text(),
      started.exited,
    ])
    child = undefined
    if (exitCode !== 0) throw new BackupFailed({ ...readFailure(stderr), exitCode })
    const seconds = Math.round((world.monotonic() - startedAt) / 100) / 10
    log.info('backup made', { ...readResult(stdout), seconds })
  }

  const check = createBackupSchedule({
    everyMs,
    clock,
    random: world.randomNumber,
    readLast: () => readLastBackup(dataDir),
    makeBackup,
    onFailed(error) {
      if (isStopping) return
      log.error('backup failed', error instanceof BackupFailed ? error.fields : { error })
      metrics?.recordBackupFailure()
    },
  })
  const stop = startPeriodicTask(checkMs, world, log, check)
  cleanups.push(() => {
    isStopping = true
    child?.kill()
    return stop()
  })
}

function readResult(stdout: string): Record<string, unknown> {
  const { data } = parse(stdout)
  if (!isRecord(data)) return {}
  const { file, bytes, pruned } = data
  return { file, bytes, pruned: Array.isArray(pruned) ? pruned.length : 0 }
}

/** Reads the error from the last line of stderr; the lines before it are steps and warnings. */
function readFailure(stderr: string): Record<string, unknown> {
  const { error } = parse(stderr.trim().split('\n').at(-1) ?? '')
  if (!isRecord(error)) return { output: stderr.slice(-500) }
  const { code, message, hint } = error
  return { code, problem: message, remedy: hint }
}

function parse(text: string): Record<string, unknown> {
  const value = parseJson(text)
  return isRecord(value) ? value : {}
}
