import type { DeliveryAttempts } from '../domain/otp/delivery-attempts.ts'
import { createCoalescingRunner } from '../domain/model/coalescing-runner.ts'

/** More than one provider may have, so that there is room beside one that hangs. */
const inFlightMax = 300

/**
 * Sends the messages that wait: those that nobody would take at first, those that did not arrive, and those of a process
 * that died. The first attempt of a message is its sender's own.
 *
 * @param needs.ownsAllLeases no other process works on this database: leases that stand at the start are void
 * @param needs.pollMs how often to look for what has become due
 * @param needs.onError told of what is nobody's fault outside; the work goes on
 */
export function createDeliveryWorker(needs: {
  attempts: DeliveryAttempts
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number | undefined
}) {
  const { attempts, ownsAllLeases, onError, pollMs = 1_000 } = needs
  const inFlight = new Set<Promise<unknown>>()
  let poll: ReturnType<typeof setInterval> | undefined
  let isStarted = false
  const { wake, running } = createCoalescingRunner(sendRound)

  async function sendRound(): Promise<boolean> {
    const capacity = isStarted ? inFlightMax - inFlight.size : 0
    if (capacity === 0) return false
    try {
      const claimed = await attempts.claimDue(capacity)
      for (const claim of claimed) {
        const done = attempts.attempt(claim).finally(() => inFlight.delete(done))
        inFlight.add(done)
      }
      return claimed.length === capacity
    } catch (error) {
      // The next poll tries anew.
      onError(error)
      return false
    }
  }

  async function whenIdle(): Promise<void> {
    await running()
    await Promise.allSettled(inFlight)
  }

  return {
    /** Sends what waits and goes on until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await attempts.releaseAllLeases()
      isStarted = true
      poll = setInterval(wake, pollMs)
      wake()
    },

    /** Tells that something may wait. */
    wake,

    /** Sends what is due, and resolves when that and all else under way has ended. */
    async sendDue(): Promise<void> {
      wake()
      await whenIdle()
    },

    /** Takes nothing more, and resolves once what is under way has ended: who carries it sees to the end. */
    async stop(): Promise<void> {
      isStarted = false
      clearInterval(poll)
      await whenIdle()
    },
  }
}
