import { randomUUID } from 'node:crypto'
import type { NewId } from '../domain/model/ids.ts'
import type { Clock } from '../domain/model/clock.ts'
import { createCoalescingRunner } from '../domain/model/coalescing-runner.ts'
import type { Store } from '../domain/store/store.ts'
import type { WebhookAttempt, SendWebhook, WebhookAttemptResult } from '../domain/model/webhook-delivery.ts'
import { disableEndpoint, failingMaxMs } from '../domain/webhooks/auto-disable.ts'
import { sendStored } from '../domain/webhooks/send-stored.ts'
import type { ClaimedDelivery, StoredWebhookMessage } from '../domain/store/webhook-outbox.ts'
import { retryDelayMs } from './retry.ts'

/** Limit per process; the outbox limits deliveries per endpoint. */
const inFlightMax = 50

/**
 * Lease of a claimed delivery. Longer than an exchange can take, so that no other process claims a delivery that
 * is still in flight.
 */
const leaseMs = 30_000

/** A finished send, to be recorded. Without `attempt` nothing was sent, and the claim is only released. */
type CompletedSend = { claim: ClaimedDelivery; attempt?: WebhookAttempt; retryAt: number | null }

export type WebhookWorker = ReturnType<typeof createWebhookWorker>

/**
 * Sends the deliveries of the outbox: at least once, in no guaranteed order. It leases due deliveries, sends
 * them, and retries failures on the schedule of `retry.ts`. An endpoint that responds 410, or only fails for
 * 120 hours, is disabled. Deliveries leased by a crashed process are sent again when the lease expires.
 *
 * @param needs.random returns a number in [0, 1); jitter of the retries
 * @param needs.ownsAllLeases no other process uses this database, so leases found at startup are stale and
 *   released
 * @param needs.pollMs longest interval between polls for deliveries that no `wake` announced
 * @param needs.onError called with unexpected errors, not with the receiver's; the worker keeps running
 */
export function createWebhookWorker(needs: {
  store: Store<'events' | 'webhookEndpoints' | 'webhookOutbox'>
  send: SendWebhook
  clock: Clock
  newId: NewId
  random: () => number
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number
}) {
  const { store, send, clock, random, ownsAllLeases, onError, pollMs = 1_000 } = needs
  const owner = randomUUID()
  const abort = new AbortController()
  const inFlight = new Set<Promise<void>>()
  /** Finished sends that are not yet recorded in the database. */
  const unrecorded = new Set<CompletedSend>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let isStarted = false
  const { wake, running } = createCoalescingRunner(sendRound, () => scheduleNextRound().catch(onError))

  async function sendRound(): Promise<boolean> {
    // Started together: on SQLite recordings and claim share one commit, in this order.
    const recordings = [...unrecorded].map(recordResult)
    const claimed = await claimDue()
    const recorded = await Promise.all(recordings)
    await sendAll(claimed).catch(onError)
    // With concurrent transactions, a recording may free capacity only after the claim; then another round is
    // due.
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
      // The next poll retries.
      onError(error)
      return []
    }
  }

  /**
   * Wakes when the next delivery is due, and at the latest after `pollMs`, for deliveries of other processes.
   */
  async function scheduleNextRound() {
    clearTimeout(timer)
    if (!isStarted) return
    const untilDueMs = ((await store.read.webhookOutbox.nextDueAt()) ?? Infinity) - clock.now()
    clearTimeout(timer)
    // A delivery that is already due waits for capacity, which wakes the worker, or for another process.
    if (isStarted) timer = setTimeout(wake, untilDueMs > 0 ? Math.min(untilDueMs, pollMs) : pollMs)
  }

  /**
   * Records a finished send.
   *
   * @returns false on a database error; the recording is retried, and once the lease expires the delivery is
   *   too
   */
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
   * Loads URL and secret after the claim is committed, because a secret rotated before then must no longer
   * sign. A delivery is released unsent if its endpoint was deleted or disabled.
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
      const response = await sendStored(send, message, abort.signal)
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

  /** Resolves when nothing is in flight or waiting to be recorded. */
  async function whenIdle(): Promise<void> {
    if (!running() && inFlight.size === 0) return
    await Promise.allSettled([...inFlight, running()])
    await whenIdle()
  }

  return {
    /** Starts sending due deliveries, until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await store.write((tx) => tx.webhookOutbox.releaseAll())
      isStarted = true
      wake()
    },

    /** Signals that a delivery may be due. Calls are coalesced, so frequent calls are cheap. */
    wake,

    whenIdle,

    /**
     * Stops claiming deliveries and drains: resolves once those in flight have ended and are recorded.
     *
     * @param withinMs time for the drain; then deliveries are aborted and released, to be sent again
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
