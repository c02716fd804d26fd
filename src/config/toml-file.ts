import { parse, TomlError } from 'smol-toml'
import { isRecord } from '../shared/json.ts'

/** One value of the configuration file and the line that defines it, counted from 1. */
export type FileEntry = { path: readonly string[]; value: unknown; line: number }

/** `column` is absent if the whole file is at fault. Both positions count from 1. */
export type ParsedFile = { entries: FileEntry[] } | { fault: string; line: number; column?: number }

/**
 * Reads TOML 1.0 into a flat list of values. A table without keys becomes an entry with the value `{}`, so that a
 * misspelt heading is reported too.
 */
export function parseConfigFile(bytes: Uint8Array): ParsedFile {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { fault: 'The file is not UTF-8 text.', line: 1 }
  }
  let document: Record<string, unknown>
  try {
    document = parse(text)
  } catch (error) {
    return describeSyntaxError(error, text)
  }
  const findLine = indexLines(text)
  const entries = flatten(document, []).map(({ path, value }) => ({ path, value, line: findLine(path) }))
  return { entries }
}

/** Tells tables from lists, dates and plain values. */
export const isTable = (value: unknown): value is Record<string, unknown> =>
  isRecord(value) && !(value instanceof Date)

/** Keeps only the reason from the message: the rest quotes the file, which may hold a misplaced secret. */
function describeSyntaxError(error: unknown, text: string): ParsedFile {
  if (!(error instanceof TomlError)) throw error
  const { line, column } = error
  const reason = error.message.split('\n')[0]?.replace('Invalid TOML document: ', '') ?? ''
  // smol-toml treats the line break that ends an unclosed string as a control character in it.
  const isUnclosed = reason.includes('in strings') && column > (text.split(/\r?\n/)[line - 1] ?? '').length
  const detail = isUnclosed ? 'the string is not closed on this line' : reason.replace(/\.$/, '')
  return { fault: `The file is not valid TOML: ${detail}.`, line, column }
}

/** Deeper than any setting; dots alone can nest tables deeper than the call stack. */
const depthMax = 8

/** Turns nested tables into paths. Top-level lists of tables are numbered from 0: `providers.0.name`. */
function flatten(table: Record<string, unknown>, parent: readonly string[]): Omit<FileEntry, 'line'>[] {
  return Object.entries(table).flatMap(([key, value]) => {
    const path = [...parent, key]
    const isList = parent.length === 0 && Array.isArray(value) && value.length > 0 && value.every(isTable)
    const inner = isList ? Object.fromEntries(value.entries()) : value
    const isInner = isTable(inner) && Object.keys(inner).length > 0 && path.length < depthMax
    return isInner ? flatten(inner, path) : [{ path, value }]
  })
}

/**
 * Finds the line that defines a key: the line of the key itself, else of the inline table or heading around it.
 * smol-toml reports positions of syntax errors only, so headings and keys are matched line by line.
 */
function indexLines(text: string): (path: readonly string[]) => number {
  const lines = new Map<string, number>()
  const counts = new Map<string, number>()
  let heading: string[] = []
  for (const [index, untrimmed] of text.split('\n').entries()) {
    // Two parts of one pattern that both match spaces would take minutes for a long line of them.
    const line = untrimmed.trim()
    const table = /^\[{1,2}([^=]+?)\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1]
    const key = /^((?:"[^"]*"|'[^']*'|[^=#"'[\]])+)=/.exec(line)?.[1]
    if (table !== undefined) {
      const [list = '', ...rest] = splitKey(table)
      const isItem = rest.length === 0 && line.startsWith('[[')
      if (isItem) counts.set(list, (counts.get(list) ?? -1) + 1)
      const index = counts.get(list)
      heading = [list, ...(index === undefined ? [] : [String(index)]), ...rest]
    }
    if (table === undefined && key === undefined) continue
    const path = joinKey(table === undefined ? [...heading, ...splitKey(key ?? '')] : heading)
    if (!lines.has(path)) lines.set(path, index + 1)
  }
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(joinKey(path.slice(0, length)))
      if (line !== undefined) return line
    }
    return 1
  }
}

function splitKey(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|([^.\s"']+)/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  )
}

const joinKey = (path: readonly string[]) => path.join('\u0000')
