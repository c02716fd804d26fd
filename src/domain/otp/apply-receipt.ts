import {
  candidateKey,
  isExcludedWith,
  toDestination,
  type Delivery,
  type Receipt,
} from '../model/delivery.ts'
import { eventChange, breakdownChange } from '../log/changes.ts'
import { blockedAgain } from '../guard/blocked.ts'
import type { GuardAlert } from '../model/guard.ts'
import type { NewId } from '../model/ids.ts'
import { withDelivery, type LoadedMessage, type Message } from '../model/message.ts'
import { noCost } from '../model/price.ts'
import { isVerifiable, type Channel, type DeliveryStatus } from '../model/request.ts'
import { findTry } from '../model/try-lines.ts'
import type { Change, Decision } from '../store/operation.ts'
import { applyCharge, chargeEarlierTry, countedAs, withFailedOver } from './charges.ts'
import type { GuardJudgement } from './judge-message.ts'
import type { ClosableRequest } from './lifecycle.ts'

/** Lets the guard judge a message that would go to another candidate. */
export type JudgeFailover = (channels: readonly Channel[], excluded: readonly string[]) => GuardJudgement

/**
 * Decides what a receipt changes: an undelivered message is reopened for another candidate, unless the guard blocks that, for
 * both cost money.
 */
export function applyReceipt(
  { newId, delivery, judge }: { newId: NewId; delivery: Delivery; judge: JudgeFailover },
  { subscribers, ...loaded }: ClosableRequest & { message: Message },
  provider: string,
  receipt: Receipt,
  now: number,
): Decision<AppliedReceipt> {
  const { status, failure } = receipt
  // It failed over meanwhile.
  if (loaded.message.provider !== provider || isOfEarlierTry(loaded, provider, receipt))
    return unmoved(chargeEarlierTry(loaded.request, provider, receipt) ?? [])
  const { request, message, changes } = applyCharge(loaded, provider, receipt)
  const isNews = message.status === 'unknown' || (message.status === 'sent' && status !== 'sent')
  if (!isNews) return unmoved(changes)
  const counted = countedAs(request, message, provider)
  if (failure?.class === 'blocked_by_carrier') changes.push(breakdownChange(counted, { blocked: 1 }, now))
  const messageId = message.messageId ?? receipt.messageId
  // The response to the send was lost, so only now does otpd know which message to report.
  const isReportable = message.messageId === null && messageId !== null && delivery.takesReports(provider)
  const received: Message = {
    ...message,
    status,
    messageId,
    failure: failure?.class ?? null,
    ...(isReportable && { reportDueAt: request.expiresAt }),
    updatedAt: now,
  }
  const withRequest = (deliveryStatus: DeliveryStatus): Change[] => {
    const updated = withDelivery(request, message, { deliveryStatus }, now)
    return updated ? [{ kind: 'request', request: updated, isNew: false }] : []
  }
  const excluded =
    status === 'undelivered'
      ? nextExclusions(delivery, { request, message: received }, provider, receipt, now)
      : undefined
  const judged = excluded && judge(message.channels, excluded)
  const alert = judged?.verdict.alert
  if (judged) changes.push(...judged.guardChanges)
  if (judged?.verdict.blocked)
    changes.push(blockedAgain(newId, request, 'failover', judged.verdict, subscribers, now))
  else if (excluded) {
    const reopened: Message = {
      ...received,
      status: 'pending',
      provider: null,
      messageId: null,
      excluded,
      nextAttemptAt: now,
      // This provider is asked for its price then, if it tells it only on demand.
      reportDueAt: delivery.takesReports(provider) ? request.expiresAt : null,
      ...noCost,
    }
    // The row forgets provider and id; the timeline keeps them, for the price.
    const named = withFailedOver(request, message, provider, receipt)
    const queued = withDelivery(named, message, { deliveryStatus: 'queued' }, now) ?? named
    changes.push(
      { kind: 'message', message: reopened, isNew: false },
      { kind: 'request', request: queued, isNew: false },
    )
    return { result: { isReopened: true, alert }, changes }
  }
  changes.push({ kind: 'message', message: received, isNew: false }, ...withRequest(status))
  if (status === 'sent') return unmoved(changes)
  const updated = withDelivery(request, message, { deliveryStatus: status }, now) ?? request
  changes.push(
    breakdownChange(counted, { [status]: 1 }, now),
    eventChange(newId, `otp.${status}`, updated, subscribers, now, { detail: failure?.class ?? null }),
  )
  return { result: { isReopened: false, alert }, changes }
}

/** Whether the message was reopened, and the alert that the guard raised. */
export type AppliedReceipt = { isReopened: boolean; alert?: GuardAlert | undefined }

const unmoved = (changes: readonly Change[]): Decision<AppliedReceipt> => ({
  result: { isReopened: false },
  changes,
})

/**
 * Whether a receipt is of an earlier message of the same provider, such as that over RCS before the one by SMS: the response to the
 * last one was lost, so that the row lacks its id, but the timeline has that of the earlier one.
 */
const isOfEarlierTry = (
  { request, message }: Pick<LoadedMessage, 'request' | 'message'>,
  provider: string,
  { messageId }: Pick<Receipt, 'messageId'>,
): boolean =>
  messageId !== null && message.messageId === null && findTry(request, { provider, messageId }) !== undefined

/**
 * Returns the candidates that the next attempt of an undelivered message must exclude; undefined if no
 * candidate is left or the message is obsolete.
 */
function nextExclusions(
  delivery: Delivery,
  { request, message }: Pick<LoadedMessage, 'request' | 'message'>,
  provider: string,
  { failure }: Receipt,
  now: number,
): string[] | undefined {
  // A newer resend replaces this message.
  if (!isVerifiable(request, now) || request.resends !== message.messageNumber) return undefined
  const candidates = delivery.routesFor(toDestination(request)).candidatesFor(message.channels)
  const { channel } = request
  const excluded = new Set([...message.excluded, candidateKey({ channel, provider })])
  for (const candidate of candidates)
    if (failure && isExcludedWith(candidate, { channel }, failure)) excluded.add(candidateKey(candidate))
  return candidates.some((candidate) => !excluded.has(candidateKey(candidate))) ? [...excluded] : undefined
}
