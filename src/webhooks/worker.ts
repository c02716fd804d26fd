import { randomUUID } from 'node:crypto'
import type { Clock } from '../domain/ports.ts'
import type { Store } from '../domain/store.ts'
import type {
  ClaimedDelivery,
  DeliveryOutcome,
  SendWebhook,
  WebhookMessage,
} from '../domain/webhook-deliveries.ts'

/** So that a receiver that hangs holds up nobody else. Within this process. */
const perEndpointMax = 2
const inFlightMax = 50

/** Outlasts an exchange, so that nobody else takes a delivery that is still under way. */
const leaseMs = 30_000

export type WebhookWorker = ReturnType<typeof createWebhookWorker>

/**
 * Sends what the outbox holds: at least once, in no promised order. A delivery is claimed, sent once, and ends as
 * delivered or failed. One that was claimed by a process that died is sent again when its lease has run out.
 *
 * @param needs.ownsAllLeases no other process works on this database: leases that stand at the start are void
 * @param needs.pollMs how often to look for what no `wake` told of
 * @param needs.onError told of what is not the receiver's fault; the work goes on
 */
export function createWebhookWorker(needs: {
  store: Store
  send: SendWebhook
  clock: Clock
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number
}) {
  const { store, send, clock, ownsAllLeases, onError, pollMs = 1_000 } = needs
  const owner = randomUUID()
  const abort = new AbortController()
  /** How many sends are under way to each endpoint. */
  const inFlight = new Map<string, number>()
  const sending = new Set<Promise<void>>()
  /** Ended, and not yet written down. */
  let outcomes: DeliveryOutcome[] = []
  let poll: ReturnType<typeof setInterval> | undefined
  let claiming = false
  let pumping: Promise<void> | undefined
  let again = false

  /** Runs one pump at a time; a call during one makes another follow it. */
  function wake(): void {
    again = true
    pumping ??= pump().finally(() => {
      pumping = undefined
    })
  }

  async function pump() {
    while (again) {
      again = false
      try {
        const claimed = await exchangeWithStore()
        if (claimed.length === 0) continue
        again = true
        await sendAll(claimed)
      } catch (error) {
        // The next poll tries anew; what was claimed comes back when its lease runs out.
        onError(error)
      }
    }
  }

  /** Writes down what has ended and claims what there is room for, in one transaction. */
  async function exchangeWithStore(): Promise<ClaimedDelivery[]> {
    // In the order of endpoints, as two processes that hold one and wait for the other would deadlock.
    const ended = outcomes.toSorted((a, b) => (a.endpointId < b.endpointId ? -1 : 1))
    const room = claiming ? inFlightMax - sending.size : 0
    const full = [...inFlight].filter(([, count]) => count >= perEndpointMax).map(([id]) => id)
    if (ended.length === 0 && room === 0) return []
    const claimed = await store.write(async (tx) => {
      for (const outcome of ended) await tx.webhookDeliveries.finish(outcome)
      if (room === 0) return []
      const now = clock.now()
      return tx.webhookDeliveries.claim({ owner, now, leaseUntil: now + leaseMs, limit: room, except: full })
    })
    outcomes = outcomes.filter((outcome) => !ended.includes(outcome))
    return claimed
  }

  /**
   * Reads URL and secret only now that the claim is committed: a secret that was rotated in the meantime must not sign
   * any more. What is gone or disabled by now stays unsent.
   */
  async function sendAll(claimed: ClaimedDelivery[]) {
    const messages = await store.read.webhookDeliveries.load(claimed.map(({ id }) => id))
    const claims = new Map(claimed.map((claim) => [claim.id, claim]))
    for (const { deliveryId, message } of messages) {
      const claim = claims.get(deliveryId)
      if (!claim) continue
      const done = deliver(claim, message).finally(() => {
        sending.delete(done)
        wake()
      })
      sending.add(done)
    }
  }

  async function deliver(claim: ClaimedDelivery, message: WebhookMessage) {
    const { endpointId } = claim
    inFlight.set(endpointId, (inFlight.get(endpointId) ?? 0) + 1)
    try {
      const { statusCode, error } = await send(message, abort.signal)
      if (!abort.signal.aborted) outcomes.push({ ...claim, owner, statusCode, error, now: clock.now() })
    } catch (error) {
      onError(error)
    } finally {
      const left = (inFlight.get(endpointId) ?? 1) - 1
      if (left === 0) inFlight.delete(endpointId)
      else inFlight.set(endpointId, left)
    }
  }

  /** Resolves when nothing is sent or waits to be written down. */
  async function quiet(): Promise<void> {
    if (!pumping && sending.size === 0) return
    await Promise.allSettled([...sending, pumping])
    await quiet()
  }

  return {
    /** Sends what waits and goes on until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await store.write((tx) => tx.webhookDeliveries.releaseAll())
      claiming = true
      poll = setInterval(wake, pollMs)
      wake()
    },

    /** Tells that something may wait. Costs nothing where it is called often. */
    wake,

    /**
     * Claims nothing more, and resolves once what is under way has ended and is written down.
     *
     * @param withinMs what has not ended by then is cut off, and will be sent again
     */
    async stop(withinMs: number): Promise<void> {
      claiming = false
      clearInterval(poll)
      const timer = setTimeout(() => abort.abort(), withinMs)
      await quiet()
      clearTimeout(timer)
    },
  }
}
