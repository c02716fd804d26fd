import type { Clock } from '../domain/model/clock.ts'
import { formatJson, formatText, type LogEntry } from './format.ts'
import { scrub } from './redact.ts'
import { createLineQueue, type Sink } from './sink.ts'
import { safeLogValue } from './value.ts'

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
