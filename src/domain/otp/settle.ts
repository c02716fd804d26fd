import type { DeliveryTry, Dispatched, DispatchResult, FailureClass } from '../model/delivery.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { eventChange, blockedChanges, breakdownChange, costCounts } from '../log/changes.ts'
import type { NewId } from '../model/ids.ts'
import {
  withDelivery,
  type MessageClaim,
  type Message,
  type MessageKey,
  type MessageOutcome,
} from '../model/message.ts'
import { closeRequest, type ClosableRequest } from './lifecycle.ts'
import { noCost } from '../model/price.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import type { Channel, OtpRequest } from '../model/request.ts'
import { endOfTry } from '../model/try-lines.ts'
import type { Change, Decision } from '../store/operation.ts'

/** Facts of the end of an attempt. */
type SettleFacts = { now: number; closable: ClosableRequest | undefined; messages: readonly Message[] }

/** Result of the end of an attempt. `provider` has, or may have, the message. */
type Settled = {
  rejected?: Rejected
  failedRequest?: OtpRequest
  handedTo?: { provider: string; messageId: string | null }
  /** The outcome was stored before, by a transaction whose answer was lost. */
  isStored?: true
}

/** Minimum lifetime left at a retry: a later code would expire before the user enters it. */
const remainingLifetimeMinMs = 5_000
const retryAfterMaxMs = 30_000

/** Exponential backoff: 2 s after the first attempt, doubling to 30 s. */
const retryAfterMs = (attempt: number) => Math.min(retryAfterMaxMs, 1000 * 2 ** attempt)

/** Decides the outcome of an attempt: message, request, counters and log entries. */
export function settle(
  newId: NewId,
  { now, closable, messages }: SettleFacts,
  claim: MessageClaim,
  dispatchResult: Dispatched | undefined,
  takesReports: (provider: string) => boolean,
): Decision<Settled> {
  const message = messages.find((one) => one.messageNumber === claim.messageNumber)
  // The request was deleted.
  if (!closable) return { result: {}, changes: [] }
  const { request } = closable
  if (message && hasEnded(message, claim)) {
    const { provider, messageId } = message
    const handedTo = provider === null ? undefined : { provider, messageId }
    return { result: { isStored: true, ...(handedTo && { handedTo }) }, changes: [] }
  }
  const isAnonymous = !isPlainPhone(request.phone)
  const tries = markInterrupted(dispatchResult?.tries ?? [], claim)
  const tryChanges = [
    ...tries.map((one): Change => {
      // The number was erased meanwhile, to which the provider's id of the message leads.
      const tried = isAnonymous ? { ...one, messageId: null, reply: null } : one
      return { kind: 'try', requestId: request.id, tried }
    }),
    ...blockedChanges(request, tries, now),
  ]
  const sent = countSent(request, dispatchResult)
  // Another sender has the lease by now; the provider charges for this message, too.
  if (!message || !isLeasedBy(message, claim)) return { result: {}, changes: [...tryChanges, ...sent] }
  const base = toMessageOutcome(dispatchResult, request, message.excluded, claim.attempt, now)
  // By then the request has ended. A verification or cancellation has it reported at once.
  const reportDueAt = isReported(base, takesReports) ? request.expiresAt : message.reportDueAt
  const outcome = { ...base, reportDueAt }
  // An attempt that asked no provider cannot name the one before it that did not end: the next one does.
  const isUnnamed = claim.isInterrupted && tries.length === 0 && outcome.status === 'pending'
  const leaseOwner = isUnnamed ? message.leaseOwner : null
  const finished = { ...message, ...outcome, leaseOwner, leaseUntil: null, updatedAt: now }
  const changes: Change[] = [...tryChanges, { kind: 'message', message: finished, isNew: false }]
  if (dispatchResult?.kind === 'accepted' || dispatchResult?.kind === 'uncertain') {
    const { candidate } = dispatchResult
    const deliveryStatus = dispatchResult.kind === 'accepted' ? 'sent' : 'unknown'
    const updated = withDelivery(request, claim, { deliveryStatus, candidate }, now)
    if (updated) changes.push({ kind: 'request', request: updated, isNew: false })
    changes.push(...sent)
    return { result: { handedTo: { provider: candidate.provider, messageId: outcome.messageId } }, changes }
  }
  if (outcome.status !== 'refused') return { result: {}, changes }
  const wanted = { channels: message.channels, country: request.country }
  const rejected = deliveryFailed({ requestId: request.id }, outcome.failure, wanted)
  const otherMessages = messages.filter((one) => one !== message)
  const refusal = refuseMessage(newId, closable, claim, otherMessages, outcome.failure, now)
  const failed = refusal.result
  return {
    result: { rejected, ...(failed && { failedRequest: failed }) },
    changes: [...changes, ...refusal.changes],
  }
}

/** The first provider that is asked after an attempt that did not end is the one that may send the code twice. */
const markInterrupted = (tries: readonly DeliveryTry[], { isInterrupted }: MessageClaim) =>
  isInterrupted ? tries.map((one, index) => (index === 0 ? { ...one, isInterrupted } : one)) : tries

/** Counts a message that a provider has, or may have, and its cost, on the day on which it was sent. */
function countSent(request: OtpRequest, dispatchResult: Dispatched | undefined): Change[] {
  if (dispatchResult?.kind !== 'accepted' && dispatchResult?.kind !== 'uncertain') return []
  const { candidate, cost, tries } = dispatchResult
  const lastTry = tries.at(-1)
  if (!lastTry) return []
  const counts = { sent: 1, ...(cost && costCounts(cost)) }
  return [breakdownChange({ ...request, ...candidate }, counts, endOfTry(lastTry))]
}

/**
 * Records a refused message, and fails its request if no other message of it can still arrive.
 *
 * @returns the failed request
 */
function refuseMessage(
  newId: NewId,
  { request, subscribers }: ClosableRequest,
  key: MessageKey,
  otherMessages: readonly Message[],
  failure: FailureClass | null,
  now: number,
): Decision<OtpRequest | undefined> {
  const changed = withDelivery(request, key, { deliveryStatus: 'undelivered' }, now)
  const current = changed ?? request
  const counted = breakdownChange(current, { undelivered: 1 }, now)
  const isUndeliverable =
    request.status === 'pending' && !otherMessages.some(({ status }) => deliverableStatuses.has(status))
  const terminalState = { status: 'failed', failureReason: 'delivery_failed' } as const
  const closed = isUndeliverable
    ? closeRequest(newId, { request: current, subscribers }, terminalState, now)
    : undefined
  const undelivered = eventChange(newId, 'otp.undelivered', closed?.result ?? current, subscribers, now, {
    detail: failure,
  })
  if (closed) return { result: closed.result, changes: [counted, undelivered, ...closed.changes] }
  const changes: Change[] = changed ? [{ kind: 'request', request: changed, isNew: false }] : []
  return { result: undefined, changes: [...changes, counted, undelivered] }
}

/** Tells whether a claim still holds its lease (fencing). */
export const isLeasedBy = ({ status, leaseOwner, attempts }: Message, claim: MessageClaim) =>
  status === 'pending' && leaseOwner === claim.owner && attempts === claim.attempt

/**
 * Whether the outcome of the attempt is in the message. A resend makes one void whose lease has run out, and leaves the owner.
 */
const hasEnded = ({ attempts, leaseOwner }: Message, claim: MessageClaim) =>
  attempts === claim.attempt && leaseOwner === null

const isReported = (
  { provider, messageId }: Pick<Message, 'provider' | 'messageId'>,
  takesReports: (provider: string) => boolean,
) => provider !== null && messageId !== null && takesReports(provider)

/** Statuses of messages that have arrived or still may. */
const deliverableStatuses: ReadonlySet<string> = new Set(['pending', 'sent', 'unknown', 'delivered'])

function toMessageOutcome(
  dispatchResult: DispatchResult | undefined,
  request: OtpRequest,
  excludedBefore: readonly string[],
  attempt: number,
  now: number,
): Omit<MessageOutcome, 'reportDueAt'> {
  const baseOutcome = {
    provider: null,
    messageId: null,
    failure: null,
    nextAttemptAt: null,
    excluded: excludedBefore,
    ...noCost,
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
        ...dispatchResult.cost,
      }
    case 'uncertain':
      return {
        ...baseOutcome,
        status: 'unknown',
        provider: dispatchResult.candidate.provider,
        failure: dispatchResult.failure.class,
        ...dispatchResult.cost,
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
 * Builds DELIVERY_FAILED, which says whether a route is missing or the number is at fault, but neither which providers were
 * tried nor why they refused.
 *
 * @param wanted channels that the message could take, and the country of the number
 */
export function deliveryFailed(
  metadata: Record<string, string>,
  failure: FailureClass | null,
  wanted: WantedRoute,
): Rejected {
  const { reason, message } = describeFailure(failure, wanted)
  return reject(new ServiceError('DELIVERY_FAILED', message, { reason, metadata }))
}

type WantedRoute = { channels: readonly Channel[]; country: string | null }

function describeFailure(failure: FailureClass | null, { channels, country }: WantedRoute) {
  if (failure === 'no_route') {
    const place = country === null ? '' : ` in ${country}`
    const message =
      channels.length > 0
        ? `No route for ${channels.join(' or ')} leads to this phone number${place}. Choose another channel, or ask the operator to add a route.`
        : `No route leads to this phone number${place} on any channel. Ask the operator to add one.`
    return { reason: 'NO_ROUTE', message }
  }
  if (failure === 'blocked_by_carrier')
    return {
      reason: 'BLOCKED_BY_CARRIER',
      message:
        "The provider's fraud filter blocked the message, so no other provider was tried. Check that the request is genuine before you send again.",
    }
  if (failure !== null && phoneNumberFailures.has(failure))
    return {
      reason: failure.toUpperCase(),
      message:
        'The code could not be delivered to this phone number. Check the number, or try another channel.',
    }
  return {
    reason: 'PROVIDERS_REFUSED',
    message: 'Every provider refused the message. Try another channel, or again later.',
  }
}

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
  { requestId, country }: { requestId: string; country: string | null },
  message: Message | undefined,
  now: number,
): { rejected: Rejected | undefined } | undefined {
  if (!message) return { rejected: undefined }
  const { status, attempts, leaseUntil, failure, channels } = message
  if (status === 'pending' && attempts === 1 && leaseUntil !== null && leaseUntil > now) return undefined
  const wanted = { channels, country }
  return { rejected: status === 'refused' ? deliveryFailed({ requestId }, failure, wanted) : undefined }
}
