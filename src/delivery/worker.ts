import type { DeliveryAttempts } from '../domain/otp/delivery-attempts.ts'
import { createPump } from '../domain/model/coalescing-runner.ts'

/** More than one provider may have, so that there is room beside one that hangs. */
const underWayMax = 300

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
  const underWay = new Set<Promise<unknown>>()
  let poll: ReturnType<typeof setInterval> | undefined
  let working = false
  const { wake, running } = createPump(sendRound)

  async function sendRound(): Promise<boolean> {
    const room = working ? underWayMax - underWay.size : 0
    if (room === 0) return false
    try {
      const claimed = await attempts.claimDue(room)
      for (const claim of claimed) {
        const done = attempts.attempt(claim).finally(() => underWay.delete(done))
        underWay.add(done)
      }
      return claimed.length === room
    } catch (error) {
      // The next poll tries anew.
      onError(error)
      return false
    }
  }

  async function quiet(): Promise<void> {
    await running()
    await Promise.allSettled(underWay)
  }

  return {
    /** Sends what waits and goes on until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await attempts.voidLeases()
      working = true
      poll = setInterval(wake, pollMs)
      wake()
    },

    /** Tells that something may wait. */
    wake,

    /** Sends what is due, and resolves when that and all else under way has ended. */
    async sendDue(): Promise<void> {
      wake()
      await quiet()
    },

    /** Takes nothing more, and resolves once what is under way has ended: who carries it sees to the end. */
    async stop(): Promise<void> {
      working = false
      clearInterval(poll)
      await quiet()
    },
  }
}
