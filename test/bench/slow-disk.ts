import { join } from 'node:path'

/**
 * Compiles what makes each fsync last 1 ms longer. macOS has no LD_PRELOAD, and no /proc for the rest of the figures.
 *
 * @param folder where it may lie for as long as the servers run
 * @returns the environment of a server on such a disk, or why there is none
 */
export function makeSlowDisk(folder: string): Record<string, string> | string {
  if (Bun.which('gcc') === null) return 'there is no gcc to build the slow disk with'
  const library = join(folder, 'slow-sync.so')
  const source = join(import.meta.dir, 'servers/slow-sync.c')
  const { success, stderr } = Bun.spawnSync(['gcc', '-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'])
  if (!success) return `gcc: ${stderr.toString().trim()}`
  return { LD_PRELOAD: library, SLOW_SYNC_US: '1000' }
}
