import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { compilePreload } from './preload.ts'

export type ProcessClock = ReturnType<typeof createProcessClock>

/** Whether the clock of a process can be moved: needs Linux and a C compiler. */
export const canMoveClocks = process.platform === 'linux' && Bun.which('gcc') !== null

/**
 * Controls the time that a process sees. Give `env` to the process; the clock may be moved while it runs.
 *
 * @param folder keeps the compiled library and the page of memory that the process shares
 * @param startMs time of day that the process starts at; the real one if left out
 * @throws Error if `process-clock.c` cannot be compiled
 */
export function createProcessClock(folder: string, startMs?: number) {
  const library = compilePreload(folder, join(import.meta.dir, 'process-clock.c'))
  const page = join(folder, `clock-${Bun.randomUUIDv7()}.page`)
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  let aheadMs = startMs === undefined ? 0 : startMs - Date.now()
  let elapsedMs = 0
  const write = () => {
    const words = Buffer.alloc(16)
    words.writeBigInt64LE(BigInt(Math.round(aheadMs)), 0)
    words.writeBigInt64LE(BigInt(Math.round(elapsedMs)), 8)
    writeSync(file, words, 0, 16, 0)
  }
  write()

  return {
    env: { LD_PRELOAD: library, CLOCK_PAGE: page },
    now: () => Date.now() + aheadMs,
    /** Sets how far the time of day is ahead of the real one. Monotonic time and timers do not change. */
    setTimeOfDay(newAheadMs: number) {
      aheadMs = newAheadMs
      write()
    },
    /** Lets time pass, timers of the process included. A timer fires when the process next wakes up. */
    advance(ms: number) {
      aheadMs += ms
      elapsedMs += ms
      write()
    },
    close: () => closeSync(file),
  }
}
