import { join } from 'node:path'

/**
 * Compiles a library that makes each fsync take 1 ms longer. Linux only: it needs LD_PRELOAD, and other figures /proc.
 *
 * @param folder keeps the library while the servers run
 * @returns the environment of a server on such a disk, or the reason why there is none
 */
export function makeSlowDisk(folder: string): Record<string, string> | string {
  if (Bun.which('gcc') === null) return 'gcc is missing, which builds the slow disk'
  const library = join(folder, 'slow-sync.so')
  const source = join(import.meta.dir, 'servers/slow-sync.c')
  const { success, stderr } = Bun.spawnSync(['gcc', '-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'])
  if (!success) return `gcc: ${stderr.toString().trim()}`
  return { LD_PRELOAD: library, SLOW_SYNC_US: '1000' }
}
