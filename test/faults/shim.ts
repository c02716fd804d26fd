import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** Where each 64-bit number stands in the page that the shim shares with us; `shim.c` has the same list. */
const slots = {
  /** How long each sync of a file takes. */
  syncDelayUs: 0,
  /** Errno that every sync fails with; 0 for none. */
  syncErrno: 1,
  /** Errno that every write and truncation fails with; 0 for none. */
  writeErrno: 2,
  /** Which call of those counted fails, once; 0 for none. */
  failAt: 3,
  failErrno: 4,
  /** How many calls the shim has counted: writes, syncs, truncations, removals. */
  calls: 5,
  /** The letter of the call that was failed by `failAt`; 0 while none was. */
  failedCall: 6,
} as const

export const errno = { EIO: 5, ENOSPC: 28 } as const

export type Shim = ReturnType<typeof createShim>

/** Compiles a library to be preloaded into the folder. @returns its path */
export function buildShim(folder: string, name: 'shim' | 'wall' = 'shim'): string {
  const library = join(folder, `${name}.so`)
  const source = join(import.meta.dir, `${name}.c`)
  const command = ['gcc', '-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, source]
  const { exitCode, stderr } = Bun.spawnSync(command, { stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`gcc could not compile ${name}.c: ${stderr.toString()}`)
  return library
}

/**
 * Stands between a process and its files: what `env` is given to a server, `set` changes while it runs.
 *
 * @param library of `buildShim`
 * @param pathPrefix only files whose path begins so are touched
 */
export function createShim(library: string, folder: string, pathPrefix: string) {
  const page = join(folder, `shim-${Bun.randomUUIDv7()}.page`)
  const log = `${page}.log`
  writeFileSync(page, Buffer.alloc(4096))
  const file = openSync(page, 'r+')
  const buffer = Buffer.alloc(8)

  return {
    /** Every write, sync, truncation and removal, and every answer that was sent, in their order; see `shim.c`. */
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
