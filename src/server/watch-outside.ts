import type { Clock } from '../domain/model/clock.ts'
import { secondMs } from '../shared/durations.ts'
import type { Log } from '../log/log.ts'
import type { Database } from '../store/engine/database.ts'
import type { World } from '../world/world.ts'
import { startPeriodicTask } from './periodic-tasks.ts'

const lookMs = 2 * secondMs
/** Differences between clock and timers below this come from rounding, not from a suspended machine. */
const aheadMsMin = secondMs

/**
 * Wakes the workers of a database on SQLite for what no commit of this process tells them: commits of other processes, such
 * as host commands, and times that have come while the machine was suspended, which timers do not count. Reads nothing but a
 * number in shared memory.
 *
 * @returns stops the watch
 */
export function watchOutside(
  changes: NonNullable<Database['changes']>,
  { clock, log, world }: { clock: Clock; log: Log; world: World },
): () => Promise<void> | undefined {
  const readAhead = () => clock.now() - world.monotonic()
  let aheadMs = readAhead()
  return startPeriodicTask(lookMs, world, log, async () => {
    changes.lookForForeign()
    const nowAheadMs = readAhead()
    if (Math.abs(nowAheadMs - aheadMs) < aheadMsMin) return
    aheadMs = nowAheadMs
    changes.notifyForeign()
  })
}
