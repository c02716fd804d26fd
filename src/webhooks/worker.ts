import { randomUUID } from 'node:crypto'
import type { NewId } from '../domain/model/ids.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { Clock } from '../domain/model/clock.ts'
import { createCoalescingRunner } from '../domain/model/coalescing-runner.ts'
import type { Store } from '../domain/store/store.ts'
import type { WebhookAttempt, SendWebhook, WebhookAttemptResult } from '../domain/webhooks/delivery.ts'
import { disableEndpoint, failingMaxMs } from '../domain/webhooks/auto-disable.ts'
import { unsealHeaders } from '../domain/webhooks/headers.ts'
import type { ClaimedDelivery, StoredWebhookMessage } from '../domain/webhooks/outbox.ts'
import { retryDelayMs } from './retry.ts'

/** Within this process; how many go to one endpoint the queue sees to. */
const inFlightMax = 50

/** Outlasts an exchange, so that nobody else takes a delivery that is still under way. */
const leaseMs = 30_000

/** A send that is over. Without an attempt there was none that counts. */
type CompletedSend = { claim: ClaimedDelivery; attempt?: WebhookAttempt; retryAt: number | null }

export type WebhookWorker = ReturnType<typeof createWebhookWorker>

/**
 * Sends what the outbox holds: at least once, in no promised order. A delivery is claimed and sent; what fails is sent
 * again on the schedule of `retry.ts`, and an endpoint that answers 410 or only fails for 120 hours is disabled. What was
 * claimed by a process that died is sent again when its lease has run out.
 *
 * @param needs.random from 0 up to 1; spreads the retries
 * @param needs.ownsAllLeases no other process works on this database: leases that stand at the start are void
 * @param needs.pollMs how often to look, at the least, for what no `wake` told of
 * @param needs.onError told of what is not the receiver's fault; the work goes on
 */
export function createWebhookWorker(needs: {
  store: Store
  send: SendWebhook
  clock: Clock
  newId: NewId
  keys: Pick<Keys, 'webhookHeader'>
  random: () => number
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number
}) {
  const { store, send, clock, keys, random, ownsAllLeases, onError, pollMs = 1_000 } = needs
  const owner = randomUUID()
  const abort = new AbortController()
  const inFlight = new Set<Promise<void>>()
  /** Not yet written down. */
  const unrecorded = new Set<CompletedSend>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let isStarted = false
  const { wake, running } = createCoalescingRunner(sendRound, () => scheduleNextRound().catch(onError))

  async function sendRound(): Promise<boolean> {
    // Begun together: on SQLite they share one commit, in this order.
    const recordings = [...unrecorded].map(recordResult)
    const claimed = await claimDue()
    const recorded = await Promise.all(recordings)
    await sendAll(claimed).catch(onError)
    // Where transactions pass each other, what was written made room only after the claim.
    return claimed.length > 0 || recorded.includes(true)
  }

  async function claimDue(): Promise<ClaimedDelivery[]> {
    const limit = isStarted ? inFlightMax - inFlight.size : 0
    if (limit === 0) return []
    try {
      const now = clock.now()
      const claim = { owner, now, leaseUntil: now + leaseMs, limit }
      return await store.write((tx) => tx.webhookOutbox.claim(claim))
    } catch (error) {
      // The next poll tries anew.
      onError(error)
      return []
    }
  }

  /** Looks again when the next delivery is due, and at every poll for what another process has written. */
  async function scheduleNextRound() {
    clearTimeout(timer)
    if (!isStarted) return
    const untilDueMs = ((await store.read.webhookOutbox.nextDueAt()) ?? Infinity) - clock.now()
    clearTimeout(timer)
    // What is due by now waits for room, which wakes us, or for another process.
    if (isStarted) timer = setTimeout(wake, untilDueMs > 0 ? Math.min(untilDueMs, pollMs) : pollMs)
  }

  /** @returns false where it could not be; it is tried again, and after the lease the delivery is */
  async function recordResult(completed: CompletedSend): Promise<boolean> {
    const { claim, attempt, retryAt } = completed
    try {
      if (!attempt) {
        await store.write((tx) => tx.webhookOutbox.release({ ...claim, owner }))
        unrecorded.delete(completed)
        return true
      }
      const now = clock.now()
      const outcome = { ...claim, owner, attempt, retryAt, now }
      const failingSince = await store.write((tx) => tx.webhookOutbox.finish(outcome))
      unrecorded.delete(completed)
      if (failingSince === null) return true
      const isGone = attempt.statusCode === 410
      if (!isGone && now - failingSince < failingMaxMs) return true
      await disableEndpoint(store, claim.endpointId, isGone ? 'gone' : 'failing', now)
      return true
    } catch (error) {
      onError(error)
      return false
    }
  }

  /**
   * Reads URL and secret only now that the claim is committed: a secret that was rotated in the meantime must not sign
   * any more. What is gone or disabled by now stays unsent.
   */
  async function sendAll(claimed: ClaimedDelivery[]) {
    if (claimed.length === 0) return
    const stored = await store.read.webhookOutbox.load(claimed.map(({ id }) => id))
    const messages = new Map(stored.map((message) => [message.deliveryId, message]))
    for (const claim of claimed) {
      const message = messages.get(claim.id)
      if (!message) {
        unrecorded.add({ claim, retryAt: null })
        continue
      }
      const done = deliver(claim, message).finally(() => {
        inFlight.delete(done)
        wake()
      })
      inFlight.add(done)
    }
  }

  async function deliver(claim: ClaimedDelivery, message: StoredWebhookMessage) {
    try {
      const at = clock.now()
      const headers = unsealHeaders(keys, claim.endpointId, message.headers)
      const response = await send({ ...message, headers }, abort.signal)
      if (abort.signal.aborted) unrecorded.add({ claim, retryAt: null })
      else unrecorded.add(toCompletedSend(claim, at, response))
    } catch (error) {
      onError(error)
    }
  }

  function toCompletedSend(
    claim: ClaimedDelivery,
    at: number,
    { retryAfterMs, ...response }: WebhookAttemptResult,
  ): CompletedSend {
    const isFinal = response.error === null || response.statusCode === 410
    const delayMs = isFinal ? null : retryDelayMs(claim.failures + 1, retryAfterMs, random)
    return { claim, attempt: { at, ...response }, retryAt: delayMs === null ? null : clock.now() + delayMs }
  }

  /** Resolves when nothing is sent or waits to be written down. */
  async function whenIdle(): Promise<void> {
    if (!running() && inFlight.size === 0) return
    await Promise.allSettled([...inFlight, running()])
    await whenIdle()
  }

  return {
    /** Sends what waits and goes on until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await store.write((tx) => tx.webhookOutbox.releaseAll())
      isStarted = true
      wake()
    },

    /** Tells that something may wait. Costs nothing where it is called often. */
    wake,

    whenIdle,

    /**
     * Claims nothing more, and resolves once what is under way has ended and is written down.
     *
     * @param withinMs what has not ended by then is cut off, and will be sent again
     */
    async stop(withinMs: number): Promise<void> {
      isStarted = false
      clearTimeout(timer)
      const abortTimer = setTimeout(() => abort.abort(), withinMs)
      await whenIdle()
      clearTimeout(abortTimer)
    },
  }
}
