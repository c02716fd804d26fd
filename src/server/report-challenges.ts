import type { Clock } from '../domain/model/clock.ts'
import type { ChallengeKind, TokenCheck } from '../domain/model/challenge.ts'
import type { Log } from '../log/log.ts'
import { minuteMs } from '../shared/durations.ts'
import type { ServerMetrics } from './metrics.ts'
import { atMostEvery } from './periodic-tasks.ts'

/** Creates the function that counts and logs checks of challenges. Logs each outcome at most once a minute. */
export function createChallengeReporter(needs: { log: Log; clock: Clock; metrics: ServerMetrics }) {
  const { log, clock, metrics } = needs
  const atMostOnceAMinute = (report: (fields: { kind: ChallengeKind; error: string }) => void) =>
    atMostEvery(minuteMs, clock, report)
  const report = {
    failed: atMostOnceAMinute((fields) => log.info('a challenge was not passed', fields)),
    unavailable: atMostOnceAMinute((fields) =>
      log.warn('a challenge could not be checked and counts as not passed; see otpd doctor', fields),
    ),
  }
  return (kind: ChallengeKind, check: TokenCheck): void => {
    metrics?.recordChallenge(check.outcome)
    if (check.outcome !== 'passed') report[check.outcome]({ kind, error: check.error })
  }
}
