import type { Clock } from '../domain/model/clock.ts'
import { isUnavailable } from '../domain/model/errors.ts'
import type { Log } from '../log/log.ts'
import { toCallerError } from '../store/engine/errors.ts'

const reportIntervalMs = 1_000

/** Creates a function that logs the failures of the database: at most one line a second, with their number. */
export function createOutageReporter(log: Log, clock: Clock): (cause: string) => void {
  let failures = 0
  let reportedAt = -Infinity
  return (cause) => {
    failures++
    if (clock.now() - reportedAt < reportIntervalMs) return
    log.error('the database is unavailable; callers are told to retry', { cause, failures })
    failures = 0
    reportedAt = clock.now()
  }
}

/** Leaves out entries about calls that failed because the database is unavailable, which the reporter counts. */
export const withoutOutages = (log: Log): Log => ({
  ...log,
  error(msg, fields) {
    if (!isUnavailable(toCallerError(fields?.['error']))) log.error(msg, fields)
  },
})
