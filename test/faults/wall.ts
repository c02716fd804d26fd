import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export type FakeWallClock = ReturnType<typeof createFakeWallClock>

/**
 * The time of day as a process sees it; monotonic time and timers stay as they are. `env` is given to a server.
 *
 * @param library of `buildShim`
 */
export function createFakeWallClock(library: string, folder: string) {
  const page = join(folder, `wall-${Bun.randomUUIDv7()}.page`)
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  let aheadMs = 0

  return {
    env: { LD_PRELOAD: library, WALL_PAGE: page },
    /** From now on it is so far ahead of the real time. */
    set(ms: number) {
      aheadMs = ms
      const word = Buffer.alloc(8)
      word.writeBigInt64LE(BigInt(ms))
      writeSync(file, word, 0, 8, 0)
    },
    now: () => Date.now() + aheadMs,
    close: () => closeSync(file),
  }
}
