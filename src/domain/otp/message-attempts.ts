import {
  candidateKey,
  inboxProvider,
  type Delivery,
  type DeliveryTry,
  type Dispatched,
} from '../model/delivery.ts'
import { isUnavailable } from '../model/errors.ts'
import type { Rejected } from '../model/rejected.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { deriveStoredCode } from '../model/code.ts'
import {
  messageLeaseLeftMinMs,
  messageLeaseMs,
  type LoadedMessage,
  type MessageClaim,
  type Message,
  type MessageKey,
  type ClaimedMessage,
} from '../model/message.ts'
import { messageRows, readClosable } from './lifecycle.ts'
import { noCost } from '../model/price.ts'
import { isLeasedBy, settle } from './settle.ts'
import { unreadablePhone } from '../model/pseudonyms.ts'
import { listTries } from '../model/try-lines.ts'
import type { FairPermits } from '../model/fair-permits.ts'
import { isExpired, type Channel, type OtpRequest } from '../model/request.ts'
import type { MessageSettings } from '../model/message-settings.ts'
import type { Clock } from '../model/clock.ts'
import { resultChanges } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { Change } from '../store/operation.ts'
import type { Store } from '../store/store.ts'

type MessageAttemptsNeeds = {
  store: Store<'leases' | 'messages'>
  clock: Clock
  newId: NewId
  keys: Keys
  delivery: Delivery
  /** Unique name of this sender across all processes, past and present. */
  owner: string
  /** Applies a receipt that arrived before the end of its message's attempt. */
  applyEarlyReceipt(key: MessageKey, provider: string, messageId: string | null): Promise<void>
  /**
   * Called after commit with a request that failed before any provider had, or may have had, a message of it. Never rejects.
   */
  onUndeliverable(request: OtpRequest): Promise<void>
  /** Called after commit with a message that a provider accepted, and its request as it was before. */
  onAccepted?: ((request: OtpRequest, tried: DeliveryTry) => void) | undefined
  /** Called when the database did not take an outcome: `settleUnstored` is due. */
  onUnstored(): void
  /** Called with unexpected errors; the message is retried. */
  onError(error: unknown): void
}

/** An attempt that has ended; its outcome is not stored yet. */
type EndedAttempt = {
  claim: MessageClaim
  request: OtpRequest
  dispatchResult: Dispatched | undefined
  pendingResult: PendingResult | undefined
}

/**
 * An idempotent result that is pending until the first attempt: it becomes `value`, or the attempt's rejection.
 * `traceparent` is the caller's, for the provider.
 */
export type PendingResult = {
  scope: IdempotencyScope | undefined
  value: unknown
  traceparent?: string | undefined
}

export type MessageAttempts = ReturnType<typeof createMessageAttempts>

/**
 * Makes the delivery attempts of messages (transactional outbox). A message is stored with its request, in one
 * transaction, before any provider is tried, so that no crash loses it. Every attempt derives the code again
 * and so sends the same one.
 */
export function createMessageAttempts(needs: MessageAttemptsNeeds) {
  const { store, clock, newId, keys, delivery, owner, onError, onUndeliverable } = needs

  /** Attempts that have ended, and whose outcome the database has not taken. */
  const unstored = new Set<EndedAttempt>()

  async function dispatchAndSettle(
    claim: MessageClaim,
    { request, message, application }: LoadedMessage,
    pendingResult: PendingResult | undefined,
  ) {
    // Another sender has taken it over.
    if (!isLeasedBy(message, claim)) return undefined
    const isObsolete =
      request.status !== 'pending' ||
      isExpired(request, clock.now()) ||
      request.phone === unreadablePhone ||
      application === null
    // Right before the message is handed over. A message that is not sent now is leased again.
    if (!isObsolete && (message.leaseUntil ?? 0) - clock.now() < messageLeaseLeftMinMs) return undefined
    const dispatchResult = isObsolete
      ? undefined
      : await delivery.dispatch({
          request,
          code: deriveStoredCode(keys, request),
          application,
          channels: message.channels,
          messageNumber: claim.messageNumber,
          attempt: claim.attempt,
          excluded: message.excluded,
          tried: listTried(request),
          traceparent: pendingResult?.traceparent,
        })
    const ended = { claim, request, dispatchResult, pendingResult }
    try {
      return await settleAttempt(ended)
    } catch (error) {
      if (isUnavailable(error)) {
        unstored.add(ended)
        needs.onUnstored()
      }
      throw error
    }
  }

  async function settleAttempt({ claim, request, dispatchResult, pendingResult }: EndedAttempt) {
    const settled = await store.decide({
      preload: messageRows(claim),
      decide(rows) {
        const facts = {
          now: rows.now(),
          closable: readClosable(rows, claim.requestId),
          messages: rows.messages(claim.requestId),
        }
        const { result, changes } = settle(newId, facts, claim, dispatchResult, delivery.takesReports)
        if (!pendingResult || result.isStored) return { result, changes }
        const answer = result.rejected ?? pendingResult.value
        return { result, changes: [...changes, ...resultChanges(pendingResult.scope, answer, facts.now)] }
      },
    })
    const { rejected, failedRequest, handedTo } = settled
    const lastTry = dispatchResult?.tries.at(-1)
    if (handedTo) await needs.applyEarlyReceipt(claim, handedTo.provider, handedTo.messageId)
    if (handedTo && lastTry?.outcome === 'accepted') needs.onAccepted?.(request, lastTry)
    if (failedRequest && listTried(failedRequest).length === 0) await onUndeliverable(failedRequest)
    return rejected
  }

  /** Stores an outcome that the database did not take. Never rejects. */
  async function settleAgain(ended: EndedAttempt): Promise<void> {
    try {
      await settleAttempt(ended)
    } catch (error) {
      if (isUnavailable(error)) return
      onError(error)
    }
    unstored.delete(ended)
  }

  /**
   * Makes one attempt and stores its outcome (message, request, events and counters) in one transaction.
   *
   * Never rejects. An outcome that the database does not take is kept, for `settleUnstored`; if the process ends before,
   * the message is sent again with the same code once its lease has expired.
   *
   * @param outgoing the message, if it was just committed
   * @returns DELIVERY_FAILED when no provider accepted the message and none will be tried again
   */
  async function attempt(
    claim: MessageClaim,
    pendingResult?: PendingResult,
    outgoing?: LoadedMessage,
  ): Promise<Rejected | undefined> {
    try {
      const loaded = outgoing ?? (await store.read.messages.load(claim))
      return loaded && (await dispatchAndSettle(claim, loaded, pendingResult))
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
     * @returns the message for `makeFirstAttempt`; undefined if it stays in the inbox
     */
    enqueue(
      request: OtpRequest,
      application: MessageSettings,
      earlier: readonly Message[],
      channels: Channel[],
      now: number,
    ): { outgoing: LoadedMessage | undefined; changes: Change[] } {
      if (request.provider === inboxProvider) return { outgoing: undefined, changes: [] }
      const superseded = earlier
        .filter(({ status, leaseUntil }) => status === 'pending' && (leaseUntil ?? 0) <= now)
        .map((message): Change => {
          const voided = { ...message, status: 'void', nextAttemptAt: null, updatedAt: now } as const
          return { kind: 'message', message: voided, isNew: false }
        })
      const message: Message = {
        requestId: request.id,
        messageNumber: request.resends,
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
        reportDueAt: null,
        ...noCost,
        createdAt: now,
        updatedAt: now,
      }
      return {
        outgoing: { request, message, application },
        changes: [...superseded, { kind: 'message', message, isNew: true }],
      }
    },

    /**
     * Makes the attempt that `enqueue` leased to this process; see `attempt`. Saves `pendingResult` with its outcome.
     *
     * @returns the refusal; undefined if a provider has the message, or may have it, or a later attempt may send it
     */
    makeFirstAttempt: (
      outgoing: LoadedMessage,
      pendingResult: PendingResult,
    ): Promise<Rejected | undefined> => {
      const { requestId, messageNumber } = outgoing.message
      return attempt({ requestId, messageNumber, owner, attempt: 1 }, pendingResult, outgoing)
    },

    attempt,

    /** Stores the outcomes that the database did not take before. Call it before `claimDue`. */
    settleUnstored: async (): Promise<void> => void (await Promise.all([...unstored].map(settleAgain))),

    /** Reads how long it takes until a message may be leased, or an outcome stored; infinite if none is pending. */
    untilDueMs: async (): Promise<number> =>
      unstored.size > 0 ? 0 : ((await store.read.messages.nextDueAt()) ?? Infinity) - clock.now(),

    /** Reports commits: see `Store.changes`. */
    changes: store.changes,

    /** Leases due messages for which there is a permit. */
    claimDue: (permits: FairPermits): Promise<ClaimedMessage[]> =>
      store.write(
        async (tx) => {
          const now = await tx.leases.now()
          const leaseUntil = now + messageLeaseMs
          return tx.messages.claim({ owner, now, leaseUntil, permits: permits.fork() })
        },
        { isUrgent: true },
      ),

    /**
     * Releases leases of a previous run. Call before serving, and only if no other process uses the database.
     */
    releaseAllLeases: (): Promise<void> => store.write((tx) => tx.messages.releaseAll()),
  }
}

/** Lists the candidates that have, or may have, had a message of a request. */
const listTried = (request: OtpRequest) =>
  listTries(request).flatMap((one) => (one.outcome === 'refused' ? [] : candidateKey(one)))
