import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export type MovableClock = ReturnType<typeof createClock>

/** Whether the clock of a process can be moved: needs Linux and a C compiler. */
export const canMoveClocks = process.platform === 'linux' && Bun.which('gcc') !== null

/**
 * Controls the time that a process sees. Give `env` to the process; `advance` may be called while it runs.
 *
 * @param folder keeps the compiled library and the page of memory that the process shares
 * @param startMs time of day that the process starts at
 * @throws Error if `clock.c` cannot be compiled
 */
export function createClock(folder: string, startMs: number) {
  const library = join(folder, 'clock.so')
  const command = ['gcc', '-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library]
  const { exitCode, stderr } = Bun.spawnSync([...command, join(import.meta.dir, 'clock.c')], {
    stderr: 'pipe',
  })
  if (exitCode !== 0) throw new Error(`gcc could not compile clock.c: ${stderr.toString()}`)

  const page = join(folder, `clock-${Bun.randomUUIDv7()}.page`)
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  let aheadMs = startMs - Date.now()
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
    /** Lets time pass, timers of the process included. A timer fires when the process next wakes up. */
    advance(ms: number) {
      aheadMs += ms
      elapsedMs += ms
      write()
    },
    close: () => closeSync(file),
  }
}
