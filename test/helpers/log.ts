import { createLog, type LogFields, type LogLevel } from '../../src/log/log.ts'
import { testClock } from './clock.ts'

/** Creates a log whose output is collected in memory. */
export function collectLog(format: 'text' | 'json' = 'json', level: LogLevel = 'info') {
  let text = ''
  const write = async (lines: string) => void (text += lines)
  const log = createLog({ format, level, write, clock: testClock() })
  return {
    log,
    async text() {
      await log.flush()
      return text
    },
  }
}

/** Returns the line that one call writes in the text format. */
export async function textLine(msg: string, fields?: LogFields) {
  const { log, text } = collectLog('text')
  log.info(msg, fields)
  return text()
}

/** Returns the object that one call writes in the JSON format. */
export async function jsonLine(
  msg: string,
  fields?: LogFields,
  level: LogLevel = 'info',
): Promise<Record<string, unknown>> {
  const { log, text } = collectLog('json', level)
  log.info(msg, fields)
  const entry: unknown = JSON.parse(await text())
  if (typeof entry !== 'object' || entry === null) throw new Error('The line is not an object.')
  return Object.fromEntries(Object.entries(entry))
}
