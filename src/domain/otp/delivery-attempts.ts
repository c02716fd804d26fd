import type { DispatchResult, Delivery, FailureClass } from '../model/delivery.ts'
import { applyReceipt, type EarlyReceipt, type EarlyReceipts } from './delivery-receipts.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { recordEvent } from '../log/events.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { deriveStoredCode } from '../model/code.ts'
import {
  messageLeaseMs,
  type ClaimedMessage,
  type LoadedMessage,
  type MessageKey,
  type MessageOutcome,
} from '../model/message.ts'
import { closeRequests, publishClosed, type LifecycleTables } from './lifecycle.ts'
import { unreadablePhone } from '../model/pseudonyms.ts'
import { isExpired, type Channel, type OtpRequest } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import { saveResult } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { Store, Stores } from '../store/store.ts'

export type DeliveryNeeds = {
  store: Store<LifecycleTables | 'idempotency' | 'otpDeliveries'>
  clock: Clock
  newId: NewId
  keys: Keys
  delivery: Delivery
  /** Unique name of this sender across all processes, past and present. */
  owner: string
  earlyReceipts: EarlyReceipts
  /**
   * Called after commit with a request that failed because none of its messages can arrive. Never rejects.
   */
  onUndeliverable(request: OtpRequest): Promise<void>
  /** Called with unexpected errors; the message is retried. */
  onError(error: unknown): void
}

/** An idempotent result that is pending until the first attempt: it becomes `value`, or the attempt's rejection. */
export type PendingResult = { scope: IdempotencyScope | undefined; value: unknown }

type AttemptResult = {
  rejected?: Rejected
  failedRequests: OtpRequest[]
  earlyReceipt?: EarlyReceipt | undefined
}

const emptyResult: AttemptResult = { failedRequests: [] }

/** Minimum lifetime left at a retry: a later code would expire before the user enters it. */
const remainingLifetimeMinMs = 5_000
const retryAfterMaxMs = 30_000

/** Exponential backoff: 2 s after the first attempt, doubling to 30 s. */
const retryAfterMs = (attempt: number) => Math.min(retryAfterMaxMs, 1000 * 2 ** attempt)

export type DeliveryAttempts = ReturnType<typeof createDeliveryAttempts>

/**
 * Makes the delivery attempts of messages (transactional outbox). A message is stored with its request, in one
 * transaction, before any provider is tried, so that no crash loses it. Every attempt derives the code again
 * and so sends the same one.
 */
export function createDeliveryAttempts(needs: DeliveryNeeds) {
  const { store, clock, newId, keys, delivery, owner, earlyReceipts, onError, onUndeliverable } = needs

  async function dispatchAndSettle(claim: ClaimedMessage, pendingResult: PendingResult | undefined) {
    // A first attempt loads them, too: the application has the texts, and the request may have been canceled or
    // deleted since the commit.
    const loaded = await store.read.otpDeliveries.load(claim)
    if (!loaded) return undefined
    const { request, message, application } = loaded
    const isObsolete =
      request.status !== 'pending' ||
      isExpired(request, clock.now()) ||
      request.phone === unreadablePhone ||
      application === null
    const dispatchResult = isObsolete
      ? undefined
      : await delivery.dispatch({
          request,
          code: deriveStoredCode(keys, request),
          application,
          channels: message.channels,
          attempt: claim.attempt,
          excluded: message.excluded,
        })
    const attemptResult = await store.write(async (tx) => {
      const result = await settle(tx, loaded, claim, dispatchResult, clock.now())
      if (pendingResult) await saveResult(tx, pendingResult.scope, result.rejected ?? pendingResult.value)
      return result
    })
    const { rejected, failedRequests } = attemptResult
    attemptResult.earlyReceipt?.forget()
    for (const failedRequest of failedRequests) await onUndeliverable(failedRequest)
    return rejected
  }

  /** Writes the outcome of an attempt: message, request, counters and log entries. */
  async function settle(
    tx: Pick<Stores, LifecycleTables | 'otpDeliveries'>,
    { request, message }: LoadedMessage,
    claim: ClaimedMessage,
    dispatchResult: DispatchResult | undefined,
    now: number,
  ): Promise<AttemptResult> {
    const outcome = toMessageOutcome(dispatchResult, request, message.excluded, claim.attempt, now)
    if (!(await tx.otpDeliveries.finish(claim, outcome, now))) return emptyResult
    if (dispatchResult?.kind === 'accepted' || dispatchResult?.kind === 'uncertain') {
      const { candidate } = dispatchResult
      const deliveryStatus = dispatchResult.kind === 'accepted' ? 'sent' : 'unknown'
      await tx.otpRequests.setDelivery(claim, { deliveryStatus, candidate }, now)
      const earlyReceipt = earlyReceipts.find(candidate.provider, {
        messageId: outcome.messageId,
        requestId: request.id,
      })
      if (earlyReceipt) await applyReceipt(tx, needs, claim, candidate.provider, earlyReceipt.receipt, now)
      return { ...emptyResult, earlyReceipt }
    }
    if (outcome.status !== 'refused') return emptyResult
    const failedRequests = await recordRefusal(tx, request, claim, outcome.failure, now)
    return { rejected: deliveryFailed(request.id, outcome.failure), failedRequests }
  }

  /** Records a refused message, and fails its request if no other message of it can still arrive. */
  async function recordRefusal(
    tx: Pick<Stores, LifecycleTables | 'otpDeliveries'>,
    request: OtpRequest,
    key: MessageKey,
    failure: FailureClass | null,
    now: number,
  ): Promise<OtpRequest[]> {
    const changed = await tx.otpRequests.setDelivery(key, { deliveryStatus: 'undelivered' }, now)
    const otherMessages = (await tx.otpDeliveries.list(request.id)).filter(
      ({ message }) => message !== key.message,
    )
    const isUndeliverable = !otherMessages.some(({ status }) => deliverableStatuses.has(status))
    const terminalState = { status: 'failed', failureReason: 'delivery_failed' } as const
    const closedRequests = isUndeliverable ? await closeRequests(tx, [request.id], terminalState, now) : []
    await recordEvent(tx, newId, 'otp.undelivered', closedRequests[0] ?? changed ?? request, now, failure)
    for (const closedRequest of closedRequests) await publishClosed(tx, newId, closedRequest, now)
    return closedRequests
  }

  /**
   * Makes one attempt and stores its outcome (message, request, events and counters) in one transaction.
   *
   * Never rejects. If the outcome could not be stored, the message is sent again with the same code once its
   * lease has expired.
   *
   * @returns DELIVERY_FAILED when no provider accepted the message and none will be tried again
   */
  async function attempt(
    claim: ClaimedMessage,
    pendingResult?: PendingResult,
  ): Promise<Rejected | undefined> {
    try {
      return await dispatchAndSettle(claim, pendingResult)
    } catch (error) {
      onError(error)
      return undefined
    }
  }

  return {
    /** Stores a message, leased to this process for its first attempt. Part of the send's transaction. */
    async enqueue(
      tx: Pick<Stores, 'otpDeliveries'>,
      key: MessageKey,
      channels: Channel[],
      now: number,
    ): Promise<void> {
      if (key.message > 0) await tx.otpDeliveries.supersede(key, now)
      await tx.otpDeliveries.insert({ ...key, channels }, owner, now, now + messageLeaseMs)
    },

    /**
     * Makes the attempt that `enqueue` leased to this process; see `attempt`. Saves `pendingResult` with its
     * outcome.
     */
    makeFirstAttempt: (key: MessageKey, pendingResult: PendingResult): Promise<Rejected | undefined> =>
      attempt({ ...key, owner, attempt: 1 }, pendingResult),

    attempt,

    /** Leases due messages. */
    claimDue: (limit: number): Promise<ClaimedMessage[]> =>
      store.write((tx) => {
        const now = clock.now()
        return tx.otpDeliveries.claim({ owner, now, leaseUntil: now + messageLeaseMs, limit })
      }),

    /**
     * Releases leases of a previous run. Call before serving, and only if no other process uses the database.
     */
    releaseAllLeases: (): Promise<void> => store.write((tx) => tx.otpDeliveries.releaseAll()),
  }
}

/** Statuses of messages that have arrived or still may. */
const deliverableStatuses: ReadonlySet<string> = new Set(['pending', 'sent', 'unknown', 'delivered'])

function toMessageOutcome(
  dispatchResult: DispatchResult | undefined,
  request: OtpRequest,
  excludedBefore: readonly string[],
  attempt: number,
  now: number,
): MessageOutcome {
  const baseOutcome = {
    provider: null,
    messageId: null,
    failure: null,
    nextAttemptAt: null,
    excluded: excludedBefore,
  }
  switch (dispatchResult?.kind) {
    case undefined:
      return { ...baseOutcome, status: 'void' }
    case 'accepted':
      return {
        ...baseOutcome,
        status: 'sent',
        provider: dispatchResult.candidate.provider,
        messageId: dispatchResult.messageId,
      }
    case 'uncertain':
      return {
        ...baseOutcome,
        status: 'unknown',
        provider: dispatchResult.candidate.provider,
        failure: dispatchResult.failure.class,
      }
    case 'refused':
      return { ...baseOutcome, status: 'refused', failure: dispatchResult.failure.class }
    case 'deferred': {
      const nextAttemptAt = now + Math.max(retryAfterMs(attempt), dispatchResult.waitMs)
      const failure = dispatchResult.failure?.class ?? null
      if (nextAttemptAt > request.expiresAt - remainingLifetimeMinMs)
        return { ...baseOutcome, status: 'refused', failure }
      return { ...baseOutcome, status: 'pending', failure, nextAttemptAt, excluded: dispatchResult.excluded }
    }
  }
}

/**
 * Builds DELIVERY_FAILED, which says whether the number is at fault, but neither which providers were tried
 * nor why they refused.
 */
const deliveryFailed = (requestId: string, failure: FailureClass | null): Rejected =>
  reject(
    new ServiceError(
      'DELIVERY_FAILED',
      'The code could not be delivered to this phone number. Check the number, or try another channel.',
      {
        reason: failure !== null && phoneNumberFailures.has(failure) ? failure.toUpperCase() : 'NO_ROUTE',
        metadata: { requestId },
      },
    ),
  )

const phoneNumberFailures: ReadonlySet<FailureClass> = new Set([
  'invalid_number',
  'unreachable',
  'opted_out',
  'geo_blocked',
])

/**
 * Reconstructs the result of a first attempt whose saved result is still pending, from the state of its
 * message.
 *
 * @returns undefined while the first attempt is in progress
 */
export async function firstAttemptResult(
  tx: Pick<Stores, 'otpDeliveries'>,
  key: MessageKey,
  now: number,
): Promise<{ rejected: Rejected | undefined } | undefined> {
  const message = await tx.otpDeliveries.find(key)
  if (!message) return { rejected: undefined }
  const { status, attempts, leaseUntil, failure } = message
  if (status === 'pending' && attempts === 1 && leaseUntil !== null && leaseUntil > now) return undefined
  return { rejected: status === 'refused' ? deliveryFailed(key.requestId, failure) : undefined }
}
