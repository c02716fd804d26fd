import type { Clock } from '../domain/model/clock.ts'
import { createFairPermits, type PermitHolder } from '../domain/model/fair-permits.ts'
import { createDueWorker } from '../domain/model/due-worker.ts'
import type { Store } from '../domain/store/store.ts'
import type { SendWebhook } from '../domain/model/webhook-delivery.ts'
import type { DeliveryLease, LeasedDelivery } from '../domain/store/webhook-outbox.ts'
import { createResultRecorder } from './result-recorder.ts'
import { retryDelayMs } from './retry.ts'
import { exchangeMsMax } from './sender.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/**
 * Limit per process, of connections and memory, which developers share: receivers that are slow must not delay the
 * webhooks of others. The outbox limits deliveries per endpoint.
 */
const inFlightMax = 200

/**
 * Lease of a claimed delivery. Longer than an exchange can take, so that no other process claims a delivery that
 * is still in flight.
 */
const leaseMs = 2 * exchangeMsMax

/** Time that a lease must have left when its delivery is sent: longer than an exchange can take. */
const leaseLeftMinMs = exchangeMsMax + 1_000

/** A leased delivery that has a permit. */
type AdmittedDelivery = LeasedDelivery & { returnPermit(): void }

export type WebhookWorker = ReturnType<typeof createWebhookWorker>

/**
 * Sends the deliveries of the outbox: at least once, in no guaranteed order. It leases due deliveries, sends them, and
 * retries failures on the schedule of `retry.ts`. An endpoint that responds 410, or only fails for 120 hours, is
 * disabled. Deliveries leased by a crashed process are sent again when the lease expires.
 *
 * On SQLite, while it has capacity to spare, deliveries are leased by the transaction that inserts them and pushed to it, so
 * they need not be claimed and read. With a backlog, and on PostgreSQL, the outbox decides what comes next.
 *
 * @param needs.random returns a number in [0, 1); jitter of the retries
 * @param needs.ownsAllLeases no other process uses this database, so leases found at startup are stale and released
 * @param needs.pollMs see `createDueWorker`
 * @param needs.onError called with unexpected errors, not with the receiver's; the worker keeps running
 */
export function createWebhookWorker(needs: {
  store: Store<'events' | 'leases' | 'webhookEndpoints' | 'webhookOutbox'>
  send: SendWebhook
  clock: Clock
  random: () => number
  ownsAllLeases: boolean
  onError(error: unknown): void
  pollMs?: number
  world?: World
}) {
  const { store, send, clock, random, ownsAllLeases, onError, pollMs = 1_000, world = systemWorld } = needs
  const { timers } = world
  const owner = world.uuid()
  const abort = new AbortController()
  const permits = createFairPermits(inFlightMax, 1 / 3)
  /** Deliveries with a permit, which the next microtask sends. */
  const queue: AdmittedDelivery[] = []
  const inFlight = new Set<Promise<void>>()
  const results = createResultRecorder({ store, owner, onError })
  let isStarted = false
  /** Whether more may be due than the last claim could lease. */
  let hasBacklog = true
  let isSendScheduled = false
  /** Whether the outbox had a delivery, due or not, when it was last looked at. */
  let hasPending = true
  const rounds = createDueWorker({
    runRound: sendRound,
    untilDueMs,
    after: timers.after,
    changes: store.changes,
    pollMs,
    onError,
  })
  const { wake, running } = rounds

  async function sendRound(): Promise<boolean> {
    // Started together: on SQLite recordings and claim share one commit, in this order.
    const isRecording = ownsAllLeases && results.hasUnrecorded()
    const recordings = results.record()
    const claimed = await claimDue(isRecording)
    const isRecorded = await recordings
    admit(claimed)
    sendQueued()
    // With concurrent transactions, a recording may free capacity only after the claim; then another round is due.
    return claimed.length > 0 || isRecorded
  }

  /** @param isWriting whether the claim shares a transaction; otherwise a read tells whether it needs one */
  async function claimDue(isWriting: boolean): Promise<LeasedDelivery[]> {
    if (!isStarted || permits.free() === 0) {
      hasBacklog = true
      return []
    }
    try {
      if (!isWriting && (await untilDeliveryMs()) > 0) {
        hasBacklog = false
        return []
      }
      const { claimed, isFull } = await store.write(
        async (tx) => {
          const now = await tx.leases.now()
          const leaseUntil = now + leaseMs
          const planned = permits.fork()
          const claims = await tx.webhookOutbox.claim({ owner, now, leaseUntil, permits: planned })
          const isFull = planned.free() === 0
          return { claimed: claims.map((claim) => ({ ...claim, leaseUntil })), isFull }
        },
        { isUrgent: true },
      )
      hasBacklog = isFull
      return claimed
    } catch (error) {
      // The next poll retries.
      onError(error)
      return []
    }
  }

  /**
   * Queues the deliveries that find a permit. The others, leased while the permits were given away, are released and claimed
   * again in turn.
   */
  function admit(leased: readonly LeasedDelivery[]) {
    let isReleased = false
    for (const claim of leased) {
      const returnPermit = permits.take(claim)
      if (returnPermit) queue.push({ ...claim, returnPermit })
      else {
        results.add({ claim, retryAfterMs: null })
        isReleased = true
      }
    }
    // Not for results that could not be recorded: after a disk fault each write fails at once, and the rounds would never end.
    if (isReleased) wake()
  }

  /** Sends the queued deliveries. */
  function sendQueued() {
    const next = queue.splice(0)
    if (next.length === 0) return
    const loaded = loadMessages(next)
    for (const claim of next) {
      const done = deliver(claim, loaded).finally(() => {
        inFlight.delete(done)
        claim.returnPermit()
        wake()
      })
      inFlight.add(done)
    }
  }

  /** Loads messages, by the ids of their deliveries. @returns undefined after an error: the leases expire then */
  async function loadMessages(claims: readonly AdmittedDelivery[]) {
    try {
      const messages = await store.read.webhookOutbox.load(claims)
      return new Map(messages.map((message) => [message.deliveryId, message]))
    } catch (error) {
      onError(error)
      return undefined
    }
  }

  async function deliver(claim: AdmittedDelivery, loaded: ReturnType<typeof loadMessages>) {
    try {
      const messages = await loaded
      if (!messages) return
      const at = clock.now()
      const message = messages.get(claim.id)
      if (!message || !isStarted || claim.leaseUntil - at < leaseLeftMinMs) {
        results.add({ claim, retryAfterMs: null })
        return
      }
      const { retryAfterMs, ...response } = await send(message, abort.signal)
      if (abort.signal.aborted) {
        results.add({ claim, retryAfterMs: null })
        return
      }
      const isFinal = response.error === null || response.statusCode === 410
      const delayMs = isFinal ? null : retryDelayMs(claim.failures + 1, retryAfterMs, random)
      const sent = { attempt: { at, ...response }, url: message.url }
      results.add({ claim, sent, retryAfterMs: delayMs })
    } catch (error) {
      onError(error)
    }
  }

  /** Reads how long it takes until the next delivery is due; infinite if none is pending. */
  async function untilDeliveryMs(): Promise<number> {
    const ms = ((await store.read.webhookOutbox.nextDueAt()) ?? Infinity) - clock.now()
    hasPending = ms < Infinity
    return ms
  }

  /** Reads how long it takes until the next delivery is due, or a result can be recorded; infinite if none is pending. */
  async function untilDueMs(): Promise<number> {
    const ms = await untilDeliveryMs()
    // The database did not take it, and it is tried again.
    return results.hasUnrecorded() ? 0 : ms
  }

  /** Resolves when nothing is in flight or waiting to be recorded. */
  async function whenIdle(): Promise<void> {
    if (!running() && inFlight.size + queue.length === 0) return
    await Promise.allSettled([...inFlight, running()])
    await whenIdle()
  }

  return {
    /** Starts sending due deliveries, until `stop`. */
    async start(): Promise<void> {
      if (ownsAllLeases) await store.write((tx) => tx.webhookOutbox.releaseAll())
      isStarted = true
      rounds.start()
      wake()
    },

    /** Signals that a delivery may be due. Calls are coalesced, so frequent calls are cheap. */
    wake,

    /** Whether there are deliveries to send, by this node or another. */
    hasPending: () => isStarted && hasPending,
    /** Wakes if a delivery is due that another node has not leased. Cheaper than `wake`, which writes. */
    async wakeIfDue(): Promise<void> {
      if (isStarted && permits.free() > 0 && (await untilDueMs()) <= 0) wake()
    },

    /** See `DeliveryQueue`. Offers only what could be sent at once; a batch of writes may still exceed it. */
    offerLease: (now: number, use: PermitHolder): DeliveryLease | undefined =>
      isStarted && !hasBacklog && permits.canTake(use) ? { owner, leaseUntil: now + leaseMs } : undefined,

    /** See `DeliveryQueue`. */
    push(deliveries: LeasedDelivery[]): void {
      admit(deliveries)
      // The writes of a batch resume one after the other: their deliveries are loaded together.
      if (isSendScheduled) return
      isSendScheduled = true
      queueMicrotask(() => {
        isSendScheduled = false
        sendQueued()
      })
    },

    whenIdle,

    /**
     * Stops claiming deliveries and drains: resolves once those in flight have ended and are recorded.
     *
     * @param withinMs time for the drain; then deliveries are aborted and released, to be sent again
     */
    async stop(withinMs: number): Promise<void> {
      isStarted = false
      rounds.stop()
      const abortTimer = timers.setTimeout(() => abort.abort(), withinMs)
      await whenIdle()
      timers.clearTimeout(abortTimer)
    },
  }
}
