import { join, parse } from 'node:path'

/**
 * Compiles a C file into a library for LD_PRELOAD. Every call makes a file of its own, because a process may still have
 * an earlier one mapped.
 *
 * @throws Error with gcc's message if it cannot be compiled
 */
export function compilePreload(folder: string, source: string): string {
  const { base, name } = parse(source)
  const library = join(folder, `${name}-${Bun.randomUUIDv7()}.so`)
  const command = ['gcc', '-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, source]
  const { exitCode, stderr } = Bun.spawnSync(command, { stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`gcc could not compile ${base}: ${stderr.toString()}`)
  return library
}
