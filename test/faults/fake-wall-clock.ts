import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export type FakeWallClock = ReturnType<typeof createFakeWallClock>

/**
 * Controls the time of day that a process sees. Monotonic time and timers do not change. Pass `env` to the server.
 *
 * @param library path from `buildShim`
 */
export function createFakeWallClock(library: string, folder: string) {
  const page = join(folder, `wall-${Bun.randomUUIDv7()}.page`)
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  let aheadMs = 0

  return {
    env: { LD_PRELOAD: library, WALL_PAGE: page },
    /** Sets how far the time of day is ahead of the real one. */
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
