import type { LogValue } from './value.ts'

export type LogEntry = { level: string; msg: string; time: string; fields: [name: string, value: LogValue][] }

/**
 * What could steer a terminal or break a line: control characters, DEL, the C1 set (U+009B begins an escape
 * sequence), line and paragraph separators, and the marks that turn the direction of writing.
 */
const steering = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const escape = (text: string) =>
  text.replace(steering, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One JSON object: level and message first, the time last. */
export function formatJson({ level, msg, time, fields }: LogEntry): string {
  return `${escape(JSON.stringify({ level, msg, ...Object.fromEntries(fields), time }))}\n`
}

/** One line for people: `2026-11-20T12:00:00.000Z info  ready url=http://127.0.0.1:8080`. */
export function formatText({ level, msg, time, fields }: LogEntry): string {
  const pairs = fields.map(([name, value]) => ` ${escape(name)}=${textOf(value)}`)
  return `${time} ${level.padEnd(5)} ${escape(msg)}${pairs.join('')}\n`
}

function textOf(value: LogValue): string {
  if (typeof value !== 'string')
    return typeof value === 'object' ? escape(JSON.stringify(value)) : String(value)
  return /^[^\s"'=\\]+$/.test(value) ? escape(value) : escape(JSON.stringify(value))
}
