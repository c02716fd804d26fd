import { createClockStepDetector, type Clock } from '../domain/model/clock.ts'
import type { Log } from '../log/log.ts'

/**
 * Tells the log when the system clock is set while the server runs. Tokens and signatures, which others compare with
 * clocks of their own, go by the new time at once; limits and lifetimes would end early or late if they did, too.
 *
 * @returns to be called now and then
 */
export function createClockStepLogger(clock: Clock, wallClock: Clock, log: Log): () => void {
  const nextStep = createClockStepDetector(clock, wallClock)
  return () => {
    const aheadMs = nextStep()
    if (aheadMs === undefined) return
    log.warn(
      'the system clock was set. The times that otpd stores and answers follow it when it is started anew.',
      { aheadSeconds: Math.round(aheadMs / 1000) },
    )
  }
}
