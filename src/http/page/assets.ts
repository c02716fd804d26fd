import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Markup } from './markup.ts'

/** Style and script of the page, which are part of it: it loads nothing else. The executable has the values. */
export const pageStyle: Markup = { markup: readShort('page.css').replaceAll('\n', '') }
export const pageScript: Markup = { markup: readShort('page.js') }

/** Reads a file without its comments and indentation. */
function readShort(name: string): string {
  const text = readFileSync(join(import.meta.dir, name), 'utf8')
  return text.replaceAll(/\/\*[^]*?\*\//g, '').replaceAll(/^\s*(\/\/.*)?\n|^\s+/gm, '')
}
