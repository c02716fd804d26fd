import type { Clock } from '../domain/model/clock.ts'
import { scrub } from './redact.ts'
import { createLineQueue, type Sink } from './sink.ts'
import { safeLogValue, type LogValue } from './value.ts'

export { descriptorSink, type Sink } from './sink.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Names are chosen by the program and say what a value is: `phone` is masked, `token` is hidden. */
export type LogFields = Readonly<Record<string, unknown>>

export type Log = Record<LogLevel, (msg: string, fields?: LogFields) => void> & {
  /** Resolves when all lines so far are written. May take for ever where nobody reads: give it a deadline. */
  flush(): Promise<void>
}

const severity: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** No field may pass for one of these. */
const reservedFields = new Set(['level', 'msg', 'time'])

/** What waits for a slow reader: some thousands of lines. */
const waitingLengthMax = 1024 * 1024

/**
 * The server's log, one line an entry. No call of it throws or waits.
 *
 * Phones are masked, codes and credentials removed, from every text and whatever the field; a text cannot begin a
 * line of its own or steer a terminal; an error is shown by name, message and code, its stack at level debug only.
 *
 * @param options.write takes finished lines, one call at a time; see `descriptorSink`
 */
export function createLog(options: {
  format: 'text' | 'json'
  level: LogLevel
  write: Sink
  clock: Clock
}): Log {
  const { clock, write } = options
  const format = options.format === 'json' ? formatJson : formatText
  const withStack = options.level === 'debug'

  function formatLine(level: LogLevel, msg: string, fields: LogFields): string {
    const entry: LogEntry = { level, msg: scrub(msg), time: new Date(clock.now()).toISOString(), fields: [] }
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined || reservedFields.has(name)) continue
      entry.fields.push([name, safeLogValue(name, value, withStack)])
    }
    return format(entry)
  }

  const queue = createLineQueue(write, {
    lengthMax: waitingLengthMax,
    formatDroppedNotice: (count) =>
      formatLine('warn', 'log lines were dropped: nobody read them in time', { count }),
  })

  const logAt =
    (level: LogLevel) =>
    (msg: string, fields: LogFields = {}) => {
      if (severity[level] >= severity[options.level]) queue.push(formatLine(level, msg, fields))
    }
  return {
    debug: logAt('debug'),
    info: logAt('info'),
    warn: logAt('warn'),
    error: logAt('error'),
    flush: queue.flush,
  }
}

type LogEntry = { level: string; msg: string; time: string; fields: [name: string, value: LogValue][] }

/**
 * What could steer a terminal or break a line: control characters, DEL, the C1 set (U+009B begins an escape
 * sequence), line and paragraph separators, and the marks that turn the direction of writing.
 */
const unsafeCharacters = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const escapeUnsafe = (text: string) =>
  text.replace(unsafeCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One JSON object: level and message first, the time last. */
function formatJson({ level, msg, time, fields }: LogEntry): string {
  return `${escapeUnsafe(JSON.stringify({ level, msg, ...Object.fromEntries(fields), time }))}\n`
}

/** One line for people: `2026-11-20T12:00:00.000Z info  ready url=http://127.0.0.1:8080`. */
function formatText({ level, msg, time, fields }: LogEntry): string {
  const pairs = fields.map(([name, value]) => ` ${escapeUnsafe(name)}=${formatValue(value)}`)
  return `${time} ${level.padEnd(5)} ${escapeUnsafe(msg)}${pairs.join('')}\n`
}

function formatValue(value: LogValue): string {
  if (typeof value !== 'string')
    return typeof value === 'object' ? escapeUnsafe(JSON.stringify(value)) : String(value)
  return /^[^\s"'=\\]+$/.test(value) ? escapeUnsafe(value) : escapeUnsafe(JSON.stringify(value))
}
