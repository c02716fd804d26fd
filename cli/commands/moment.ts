import { usageError } from '../terminal/errors.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../src/shared/durations.ts'
import { parseTime } from '../../src/shared/times.ts'

export const sinceFlags = '--since <time>'
export const sinceHelp = '10m, 2h, 3d, or 2026-11-20T08:00:00Z'

const unitMs: Record<string, number> = { s: secondMs, m: minuteMs, h: hourMs, d: dayMs }

/**
 * Parses the value of a flag to milliseconds since the epoch: `10m` is ten minutes ago; anything else is a date, which begins at
 * midnight of the time zone that commands print times in.
 *
 * @throws usage error
 */
export function parseMoment(text: string, nowMs: number, flag = '--since'): number {
  const [, count, unit = ''] = /^(\d{1,5}(?:\.\d+)?)([smhd])$/.exec(text) ?? []
  if (count !== undefined) return nowMs - Number(count) * (unitMs[unit] ?? Number.NaN)
  const timestampMs = parseTime(/^[\d-]{10}$/.test(text) ? `${text} 00:00` : text)
  if (Number.isNaN(timestampMs)) throw usageError(`${flag} must be a time like ${sinceHelp}.`)
  return timestampMs
}
