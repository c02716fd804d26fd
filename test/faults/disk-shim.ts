import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { compilePreload } from '../helpers/preload.ts'

/** Index of each 64-bit number in the page of memory shared with the shim. `disk-shim.c` has the same list. */
const slots = {
  /** Delay that is added to each sync of a file. */
  syncDelayUs: 0,
  /** Errno that every sync fails with; 0 for none. */
  syncErrno: 1,
  /** Errno that every write and truncation fails with; 0 for none. */
  writeErrno: 2,
  /** Number of the counted call that fails once; 0 for none. */
  failAt: 3,
  failErrno: 4,
  /** Number of calls that the shim has counted: writes, syncs, truncations, deletions. */
  calls: 5,
  /** Letter of the call that `failAt` made fail; 0 until then. */
  failedCall: 6,
} as const

export const errno = { EIO: 5, ENOSPC: 28 } as const

/** Instead of an errno: the call ends the process before it is made, as kill -9 does. */
export const killProcess = -1

export type Shim = ReturnType<typeof createShim>

/** Compiles the shim into the folder. @returns the library's path */
export const buildShim = (folder: string): string =>
  compilePreload(folder, join(import.meta.dir, 'disk-shim.c'))

/**
 * Controls a shim between a process and its files. Pass `env` to the server; `set` changes its behavior while it runs.
 *
 * @param library path from `buildShim`
 * @param pathPrefix only files whose path has this prefix are affected
 */
export function createShim(library: string, folder: string, pathPrefix: string) {
  const page = join(folder, `shim-${Bun.randomUUIDv7()}.page`)
  const log = `${page}.log`
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  const buffer = Buffer.alloc(8)

  return {
    /** Log of every write, sync, truncation and deletion, and of every response, in order; see `disk-shim.c`. */
    log,
    env: (options: { log?: boolean } = {}): Record<string, string> => ({
      LD_PRELOAD: library,
      SHIM_PAGE: page,
      SHIM_BELOW: pathPrefix,
      ...(options.log && { SHIM_LOG: log }),
    }),
    set(slot: keyof typeof slots, value: number) {
      buffer.writeBigInt64LE(BigInt(value))
      writeSync(file, buffer, 0, 8, slots[slot] * 8)
    },
    get(slot: keyof typeof slots): number {
      readSync(file, buffer, 0, 8, slots[slot] * 8)
      return Number(buffer.readBigInt64LE())
    },
    close: () => closeSync(file),
  }
}
