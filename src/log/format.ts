import type { LogValue } from './value.ts'

export type LogEntry = { level: string; msg: string; time: string; fields: [name: string, value: LogValue][] }

/**
 * What could steer a terminal or break a line: control characters, DEL, the C1 set (U+009B begins an escape
 * sequence), line and paragraph separators, and the marks that turn the direction of writing.
 */
const unsafeCharacters = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const escapeUnsafe = (text: string) =>
  text.replace(unsafeCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One JSON object: level and message first, the time last. */
export function formatJson({ level, msg, time, fields }: LogEntry): string {
  return `${escapeUnsafe(JSON.stringify({ level, msg, ...Object.fromEntries(fields), time }))}\n`
}

/** One line for people: `2026-11-20T12:00:00.000Z info  ready url=http://127.0.0.1:8080`. */
export function formatText({ level, msg, time, fields }: LogEntry): string {
  const pairs = fields.map(([name, value]) => ` ${escapeUnsafe(name)}=${formatValue(value)}`)
  return `${time} ${level.padEnd(5)} ${escapeUnsafe(msg)}${pairs.join('')}\n`
}

function formatValue(value: LogValue): string {
  if (typeof value !== 'string')
    return typeof value === 'object' ? escapeUnsafe(JSON.stringify(value)) : String(value)
  return /^[^\s"'=\\]+$/.test(value) ? escapeUnsafe(value) : escapeUnsafe(JSON.stringify(value))
}
