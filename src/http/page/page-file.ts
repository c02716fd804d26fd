import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads a file of the page without its comments and indentation. Runs as a macro, so that the executable contains the text. */
export function readPageFile(name: string): string {
  const text = readFileSync(join(import.meta.dir, name), 'utf8')
  const short = text.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/^\s*(\/\/.*)?\n|^\s+/gm, '')
  return name.endsWith('.css') ? short.replaceAll('\n', '') : short
}
