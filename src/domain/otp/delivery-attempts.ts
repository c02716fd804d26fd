import { inboxProvider, type DispatchResult, type Delivery, type FailureClass } from '../model/delivery.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { eventChange } from '../log/events.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { deriveStoredCode } from '../model/code.ts'
import {
  messageLeaseMs,
  withDelivery,
  type ClaimedMessage,
  type Message,
  type MessageKey,
  type MessageOutcome,
} from '../model/message.ts'
import { closeRequest, readClosable, type ClosableRequest } from './lifecycle.ts'
import { unreadablePhone } from '../model/pseudonyms.ts'
import { isExpired, type Channel, type OtpRequest } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import { resultChanges } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { Change, Decision } from '../store/operation.ts'
import type { Store } from '../store/store.ts'

export type DeliveryNeeds = {
  store: Store<'otpDeliveries'>
  clock: Clock
  newId: NewId
  keys: Keys
  delivery: Delivery
  /** Unique name of this sender across all processes, past and present. */
  owner: string
  /** Applies a receipt that arrived before the end of its message's attempt. */
  applyEarlyReceipt(key: MessageKey, provider: string, messageId: string | null): Promise<void>
  /**
   * Called after commit with a request that failed because none of its messages can arrive. Never rejects.
   */
  onUndeliverable(request: OtpRequest): Promise<void>
  /** Called with unexpected errors; the message is retried. */
  onError(error: unknown): void
}

/** An idempotent result that is pending until the first attempt: it becomes `value`, or the attempt's rejection. */
export type PendingResult = { scope: IdempotencyScope | undefined; value: unknown }

/** Facts of the end of an attempt. */
type SettleFacts = { now: number; closable: ClosableRequest | undefined; messages: readonly Message[] }

/** Result of the end of an attempt. `provider` has, or may have, the message. */
type Settled = {
  rejected?: Rejected
  failedRequest?: OtpRequest
  accepted?: { provider: string; messageId: string | null }
}

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
  const { store, clock, newId, keys, delivery, owner, onError, onUndeliverable } = needs

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
    const settled = await store.decide({
      read: async (rows): Promise<SettleFacts> => ({
        now: clock.now(),
        closable: await readClosable(rows, claim.requestId),
        messages: await rows.messages(claim.requestId),
      }),
      decide(facts) {
        const { result, changes } = settle(facts, claim, dispatchResult)
        if (!pendingResult) return { result, changes }
        const answer = result.rejected ?? pendingResult.value
        return { result, changes: [...changes, ...resultChanges(pendingResult.scope, answer, facts.now)] }
      },
    })
    const { rejected, failedRequest, accepted } = settled
    if (accepted) await needs.applyEarlyReceipt(claim, accepted.provider, accepted.messageId)
    if (failedRequest) await onUndeliverable(failedRequest)
    return rejected
  }

  /** Decides the outcome of an attempt: message, request, counters and log entries. */
  function settle(
    { now, closable, messages }: SettleFacts,
    claim: ClaimedMessage,
    dispatchResult: DispatchResult | undefined,
  ): Decision<Settled> {
    const message = messages.find((one) => one.message === claim.message)
    // Another sender has the lease by now, or the request was deleted.
    if (!closable || !message || !isLeasedBy(message, claim)) return { result: {}, changes: [] }
    const { request } = closable
    const outcome = toMessageOutcome(dispatchResult, request, message.excluded, claim.attempt, now)
    const finished = { ...message, ...outcome, leaseOwner: null, leaseUntil: null, updatedAt: now }
    const changes: Change[] = [{ kind: 'message', message: finished, isNew: false }]
    if (dispatchResult?.kind === 'accepted' || dispatchResult?.kind === 'uncertain') {
      const { candidate } = dispatchResult
      const deliveryStatus = dispatchResult.kind === 'accepted' ? 'sent' : 'unknown'
      const updated = withDelivery(request, claim, { deliveryStatus, candidate }, now)
      if (updated) changes.push({ kind: 'request', request: updated, isNew: false })
      return { result: { accepted: { provider: candidate.provider, messageId: outcome.messageId } }, changes }
    }
    if (outcome.status !== 'refused') return { result: {}, changes }
    const rejected = deliveryFailed(request.id, outcome.failure)
    const otherMessages = messages.filter((one) => one !== message)
    const refusal = refuseMessage(closable, claim, otherMessages, outcome.failure, now)
    const failed = refusal.result
    return {
      result: { rejected, ...(failed && { failedRequest: failed }) },
      changes: [...changes, ...refusal.changes],
    }
  }

  /**
   * Records a refused message, and fails its request if no other message of it can still arrive.
   *
   * @returns the failed request
   */
  function refuseMessage(
    { request, subscribers }: ClosableRequest,
    key: MessageKey,
    otherMessages: readonly Message[],
    failure: FailureClass | null,
    now: number,
  ): Decision<OtpRequest | undefined> {
    const changed = withDelivery(request, key, { deliveryStatus: 'undelivered' }, now)
    const current = changed ?? request
    const isUndeliverable =
      request.status === 'pending' && !otherMessages.some(({ status }) => deliverableStatuses.has(status))
    const terminalState = { status: 'failed', failureReason: 'delivery_failed' } as const
    const closed = isUndeliverable
      ? closeRequest(newId, { request: current, subscribers }, terminalState, now)
      : undefined
    const undelivered = eventChange(newId, 'otp.undelivered', closed?.result ?? current, subscribers, now, {
      detail: failure,
    })
    if (closed) return { result: closed.result, changes: [undelivered, ...closed.changes] }
    const changes: Change[] = changed ? [{ kind: 'request', request: changed, isNew: false }] : []
    return { result: undefined, changes: [...changes, undelivered] }
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
    /**
     * Puts the newest message of a request into the outbox, leased to this process for its first attempt, unless it
     * stays in the inbox. Earlier messages that wait, and are not leased, become void.
     *
     * @param earlier messages of the request
     */
    enqueue(request: OtpRequest, earlier: readonly Message[], channels: Channel[], now: number): Change[] {
      if (request.provider === inboxProvider) return []
      const superseded = earlier
        .filter(({ status, leaseUntil }) => status === 'pending' && (leaseUntil ?? 0) <= now)
        .map((message): Change => {
          const voided = { ...message, status: 'void', nextAttemptAt: null, updatedAt: now } as const
          return { kind: 'message', message: voided, isNew: false }
        })
      const message: Message = {
        requestId: request.id,
        message: request.resends,
        channels,
        status: 'pending',
        provider: null,
        messageId: null,
        failure: null,
        excluded: [],
        attempts: 1,
        nextAttemptAt: now,
        leaseOwner: owner,
        leaseUntil: now + messageLeaseMs,
        createdAt: now,
        updatedAt: now,
      }
      return [...superseded, { kind: 'message', message, isNew: true }]
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

/** Tells whether a claim still holds its lease (fencing). */
const isLeasedBy = ({ status, leaseOwner, attempts }: Message, claim: ClaimedMessage) =>
  status === 'pending' && leaseOwner === claim.owner && attempts === claim.attempt

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
export function firstAttemptResult(
  requestId: string,
  message: Message | undefined,
  now: number,
): { rejected: Rejected | undefined } | undefined {
  if (!message) return { rejected: undefined }
  const { status, attempts, leaseUntil, failure } = message
  if (status === 'pending' && attempts === 1 && leaseUntil !== null && leaseUntil > now) return undefined
  return { rejected: status === 'refused' ? deliveryFailed(requestId, failure) : undefined }
}
