import type { MessageAttempts } from '../domain/otp/message-attempts.ts'
import { createFairPermits } from '../domain/model/fair-permits.ts'
import { createDueWorker } from '../domain/model/due-worker.ts'
import { systemWorld } from '../world/system.ts'
import type { Timers } from '../world/world.ts'

/** More than one provider's in-flight limit, so that one that hangs leaves room for the others. */
const inFlightMax = 600

/**
 * Background retries: sends queued messages that no provider accepted at first, that were reported
 * undelivered, or whose lease a crashed process left behind. The send request itself makes the first attempt
 * of a message.
 *
 * @param needs.ownsAllLeases no other process uses this database, so leases found at startup are stale and
 *   released
 * @param needs.pollMs see `createDueWorker`; also the shortest pause between two rounds that retry
 * @param needs.onError called with unexpected errors; the worker keeps running
 */
export function createDeliveryWorker(needs: {
  attempts: MessageAttempts
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number | undefined
  timers?: Timers
}) {
  const { attempts, ownsAllLeases, onError, pollMs = 1_000, timers = systemWorld.timers } = needs
  const permits = createFairPermits(inFlightMax, 1)
  const inFlight = new Set<Promise<unknown>>()
  let isStarted = false
  const { untilDueMs, changes } = attempts
  const rounds = createDueWorker({
    runRound: sendRound,
    untilDueMs,
    after: timers.after,
    changes,
    pollMs,
    pauseMs: pollMs,
    onError,
  })

  async function sendRound(): Promise<boolean> {
    if (!isStarted) return false
    await attempts.settleUnstored()
    if (permits.free() === 0) return false
    if ((await untilDueMs()) > 0) return false
    const claimed = await attempts.claimDue(permits)
    for (const claim of claimed) {
      const returnPermit = permits.take(claim)
      const done = attempts.attempt(claim).finally(() => {
        inFlight.delete(done)
        returnPermit?.()
      })
      inFlight.add(done)
    }
    return claimed.length > 0
  }

  async function whenIdle(): Promise<void> {
    await rounds.running()
    await Promise.allSettled(inFlight)
  }

  return {
    /** Starts sending due messages, until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await attempts.releaseAllLeases()
      isStarted = true
      rounds.start()
      rounds.wake()
    },

    /** Signals that a message may be due. */
    wake: rounds.wake,

    /** Sends due messages once; resolves when they and all attempts in flight have ended. */
    async sendDue(): Promise<void> {
      rounds.wake()
      await whenIdle()
    },

    /**
     * Stops claiming messages; resolves once attempts in flight have ended. The dispatcher bounds how long
     * they take.
     */
    async stop(): Promise<void> {
      isStarted = false
      rounds.stop()
      await whenIdle()
      await attempts.settleUnstored()
    },
  }
}
