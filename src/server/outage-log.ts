import type { Clock } from '../domain/model/clock.ts'
import { isUnavailable } from '../domain/model/errors.ts'
import type { Log } from '../log/log.ts'
import { toCallerError } from '../store/engine/errors.ts'

const reportIntervalMs = 1_000

type OutageReporter = {
  /** Logs failures of the database: at most one line a second, with their number. */
  onFailure(cause: string): void
  /** Logs the end of an outage, with the number of its failures. Called with each write that shows that the database is there. */
  onSuccess(): void
}

/** Creates what logs the outages of the database. */
export function createOutageReporter(log: Log, clock: Clock): OutageReporter {
  /** Since the last line, and since the outage began. */
  let failures = 0
  let outageFailures = 0
  let reportedAt = -Infinity
  let failedSince: number | undefined
  return {
    onFailure(cause) {
      failedSince ??= clock.now()
      failures++
      outageFailures++
      if (clock.now() - reportedAt < reportIntervalMs) return
      log.error('the database is unavailable; callers are told to retry', { cause, failures })
      failures = 0
      reportedAt = clock.now()
    },
    onSuccess() {
      if (failedSince === undefined) return
      const outageMs = Math.round(clock.now() - failedSince)
      log.info('the database is available again', { outageMs, failures: outageFailures })
      failedSince = undefined
      failures = outageFailures = 0
    },
  }
}

/** Leaves out entries about calls that failed because the database is unavailable, which the reporter counts. */
export const withoutOutages = (log: Log): Log => ({
  ...log,
  error(msg, fields) {
    if (!isUnavailable(toCallerError(fields?.['error']))) log.error(msg, fields)
  },
})
