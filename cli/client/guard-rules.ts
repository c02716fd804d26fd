import { dayMs, hourMs, minuteMs } from '../../src/shared/durations.ts'
import { usageError } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

/** Converts how long a rule applies to a time. @throws usage error */
export function readEnd(text: string, nowMs: number): string {
  const [, count, unit] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? []
  if (count === undefined)
    throw usageError(`"for" must be a time like 30m, 24h or 7d, not "${printable(text)}".`)
  const unitMs = unit === 'm' ? minuteMs : unit === 'h' ? hourMs : dayMs
  return new Date(nowMs + Number(count) * unitMs).toISOString()
}
