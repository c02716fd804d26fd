import { durationMs } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { dayMs } from '../../src/shared/durations.ts'
import { parseTime } from '../../src/shared/times.ts'

export const sinceFlags = '--since <time>'
export const sinceHelp = '10m, 2h, 3d, or 2026-11-20T08:00:00Z'

/**
 * Parses --since to milliseconds since the epoch: `10m` is ten minutes ago; anything else is a date.
 *
 * @throws usage error
 */
export function parseMoment(since: string, nowMs: number): number {
  const [, days] = /^(\d{1,4})d$/.exec(since) ?? []
  if (days !== undefined) return nowMs - Number(days) * dayMs
  if (/^[\d.]+(ms|s|m|h)$/.test(since)) return nowMs - durationMs(since, '--since')
  const timestampMs = parseTime(since)
  if (Number.isNaN(timestampMs))
    throw usageError('--since must be a time like 10m, 2h, 3d or 2026-11-20T08:00:00Z.')
  return timestampMs
}
