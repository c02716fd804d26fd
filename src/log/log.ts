import type { Clock } from '../domain/model/clock.ts'
import { scrub } from '../shared/redact.ts'
import { createLineQueue, type Sink } from './sink.ts'
import { safeLogValue, type LogValue } from './value.ts'

export { descriptorSink } from './sink.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Fields of an entry. A name says what its value is and so how it is redacted: `phone` is masked, `token` hidden. */
export type LogFields = Readonly<Record<string, unknown>>

export type Log = Record<LogLevel, (msg: string, fields?: LogFields) => void> & {
  /** Resolves when all lines so far are written. Needs a deadline: it never resolves if the reader has stopped. */
  flush(): Promise<void>
}

const severity: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** Names of the entry itself; fields with these names are dropped. */
const reservedFields = new Set(['level', 'msg', 'time'])

/** Characters buffered for a slow reader: some thousands of lines. */
const waitingLengthMax = 1024 * 1024

/**
 * Creates the server's log, one line per entry. Its methods never throw or block.
 *
 * Phone numbers are masked, and codes and credentials removed, in every text of every field. A text cannot start a new
 * line or control a terminal. Errors are shown as name, message and code; stacks at level `debug` only.
 *
 * @param options.completeCommands completes the commands that a message or a remedy suggests, so that they work when pasted
 * @param options.write receives formatted lines, one call at a time; see `descriptorSink`
 */
export function createLog(options: {
  format: 'text' | 'json'
  level: LogLevel
  write: Sink
  clock: Clock
  completeCommands?: ((text: string) => string) | undefined
}): Log {
  const { clock, write, completeCommands = (text) => text } = options
  const format = options.format === 'json' ? formatJson : formatText
  const withStack = options.level === 'debug'

  function formatLine(level: LogLevel, msg: string, fields: LogFields): string {
    const entry: LogEntry = {
      level,
      msg: completeCommands(scrub(msg)),
      time: new Date(clock.now()).toISOString(),
      fields: [],
    }
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined || reservedFields.has(name)) continue
      const safe = safeLogValue(name, value, withStack)
      entry.fields.push([name, name === 'remedy' && typeof safe === 'string' ? completeCommands(safe) : safe])
    }
    return format(entry)
  }

  const queue = createLineQueue(write, {
    lengthMax: waitingLengthMax,
    formatDroppedNotice: (count) =>
      formatLine('warn', 'log lines were dropped: the reader was too slow', { count }),
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
 * Characters that could control a terminal or break a line: control characters, DEL, the C1 set (U+009B begins an escape
 * sequence), line and paragraph separators, and marks that change the direction of text.
 */
const unsafeCharacters = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const escapeUnsafe = (text: string) =>
  text.replace(unsafeCharacters, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Formats one JSON object: level and message first, the time last. */
function formatJson({ level, msg, time, fields }: LogEntry): string {
  return `${escapeUnsafe(JSON.stringify({ level, msg, ...Object.fromEntries(fields), time }))}\n`
}

/** Formats one line for people: `2026-11-20T12:00:00.000Z info  ready url=http://127.0.0.1:8080`. */
function formatText({ level, msg, time, fields }: LogEntry): string {
  const pairs = fields.map(([name, value]) => ` ${escapeUnsafe(name)}=${formatValue(value)}`)
  return `${time} ${level.padEnd(5)} ${escapeUnsafe(msg)}${pairs.join('')}\n`
}

function formatValue(value: LogValue): string {
  if (typeof value !== 'string')
    return typeof value === 'object' ? escapeUnsafe(JSON.stringify(value)) : String(value)
  return /^[^\s"'=\\]+$/.test(value) ? escapeUnsafe(value) : escapeUnsafe(JSON.stringify(value))
}
