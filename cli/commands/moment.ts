import { durationMs } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { dayMs } from '../../src/shared/durations.ts'
import { parseTime } from '../../src/shared/times.ts'

export const sinceFlags = '--since <time>'
export const sinceHelp = '10m, 2h, 3d, or 2026-11-20T08:00:00Z'

/**
 * Parses the value of a flag to milliseconds since the epoch: `10m` is ten minutes ago; anything else is a date, which begins at
 * midnight of the time zone that commands print times in.
 *
 * @throws usage error
 */
export function parseMoment(text: string, nowMs: number, flag = '--since'): number {
  const [, days] = /^(\d{1,4})d$/.exec(text) ?? []
  if (days !== undefined) return nowMs - Number(days) * dayMs
  if (/^[\d.]+(ms|s|m|h)$/.test(text)) return nowMs - durationMs(text, flag)
  const timestampMs = parseTime(/^[\d-]{10}$/.test(text) ? `${text} 00:00` : text)
  if (Number.isNaN(timestampMs)) throw usageError(`${flag} must be a time like ${sinceHelp}.`)
  return timestampMs
}
