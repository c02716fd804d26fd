import { readRefusal } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { notFound, type ServiceError } from '../model/errors.ts'
import { toDestination, inboxProvider } from '../model/delivery.ts'
import { isRejected, reject, type Rejected } from '../model/rejected.ts'
import { breakdownChange, countChange } from '../log/changes.ts'
import { blockedAgain, destinationBlocked } from '../guard/blocked.ts'
import { noToken, type ChallengeAnswer } from '../guard/challenge.ts'
import type { GuardedMessage } from '../guard/row-keys.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { OtpNeeds } from './needs.ts'
import { chargeRate, chargeSend, otpRateLimit } from './rate-limits.ts'
import { judgeMessage, nameJudgeRows, readSender, sentChanges } from './judge-message.ts'
import { refuseIfClosed } from './lifecycle.ts'
import {
  isTooSoon,
  resendChannels,
  resendsExhausted,
  resendTooSoon,
  startDelivery,
  type ChannelChoice,
} from './new-message.ts'
import { isVerifiable, resendsMax, type Channel, type OtpRequest } from '../model/request.ts'
import { invalidPhone, isVirtualPhone, parsePhone } from '../model/phone.ts'
import { hasPhoneBudgets, trustOfRequest, namePhoneRows, readRequestPhone } from './phones.ts'
import { deliveryFailed } from './settle.ts'
import {
  completeSend,
  earlierRequest,
  readEarlierSend,
  challengeRefusal,
  limitRefusal,
  refusalDecision,
  withResult,
  type SendDecision,
  type Replay,
  type SendResult,
} from './send-result.ts'
import {
  createRequestFinder,
  readTarget,
  requestNotFound,
  type OtpTarget,
  type RequestFinder,
} from './target.ts'
import { refuseCall } from './templates.ts'
import type { PhoneRecord } from '../model/phone-record.ts'
import type { Decision, NamedRows, Operation, Rows } from '../store/operation.ts'
import { utcDay } from '../../shared/durations.ts'

/** A call that sends the code of a request once more. */
type ResendCall = {
  application: CallingApplication
  finder: RequestFinder
  choice: ChannelChoice
  scope?: IdempotencyScope | undefined
  /** Undefined for a façade, which cannot show challenges, and whose messages may follow one another at once. */
  challenge?: ChallengeAnswer | undefined
}

/** Sends codes once more. */
export function createOtpResend(needs: OtpNeeds) {
  const { newId, keys, plans, delivery, attempts, guard } = needs

  return { resend, resendOperation }

  /**
   * Sends the same code once more: same request, attempts and expiry. Counts as a send.
   *
   * @throws as for a send, except that the request stays pending when the guard blocks the message
   * @throws NOT_FOUND no such request of this application; INVALID_ARGUMENT a call for a payment
   * @throws ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed
   * @throws CONFLICT (RESENDS_EXHAUSTED)
   * @throws RATE_LIMITED (RESEND_TOO_SOON), DELIVERY_FAILED (NO_ROUTE); nothing was written
   */
  async function resend(
    application: CallingApplication,
    input: OtpTarget & { channel?: Channel | undefined; challenge?: string | undefined },
    scope?: IdempotencyScope,
  ): Promise<SendResult> {
    const { channel, challenge: token, ...typed } = input
    const target = await readTarget(needs, application, typed)
    const challenge =
      token === undefined ? noToken : await needs.challenges.answer(application, { challenge: token })
    const finder = createRequestFinder(needs, application, target)
    const call = { application, finder, choice: { channel }, scope, challenge }
    const outcome = await needs.store.decide(resendOperation(call, () => requestNotFound(target)))
    return completeSend(needs, application, scope, outcome)
  }

  /** The operation of a resend. @param toNotFound error for a request that there is not */
  function resendOperation(
    call: ResendCall,
    toNotFound = (): ServiceError => notFound('otpRequest'),
  ): Operation<SendDecision | Replay> {
    const { application, finder, scope } = call
    return {
      preload: {
        lookUp: finder.lookUp,
        first: (rows) => ({ application, answers: scope ? [scope] : [], ...finder.nameRows(rows) }),
        next: (rows) => nameRows(rows, call),
      },
      decide(rows) {
        const now = rows.now()
        const refusal = readRefusal(rows, application)
        if (refusal) return refusalDecision(refusal)
        const earlier = scope && readEarlierSend(rows, scope, now)
        if (earlier) return isRejected(earlier) ? refusalDecision(earlier) : { result: earlier, changes: [] }
        const request = finder.find(rows, now)
        return request && isVerifiable(request, now)
          ? decideResend(rows, call, request, now)
          : refuseEnded(rows, application, request ?? reject(toNotFound()), now)
      },
    }
  }

  /** Refuses to send a code that can no longer be verified. Charged, so that ids cannot be probed for free. */
  function refuseEnded(
    rows: Rows,
    application: CallingApplication,
    request: OtpRequest | Rejected,
    now: number,
  ): Decision<SendDecision> {
    const charged = chargeRate(needs, rows, application, 'send', now)
    if (isRejected(charged)) return refusalDecision(charged)
    const { rate } = charged
    if (isRejected(request)) return refusalDecision(request, rate, charged.changes)
    const closed = refuseIfClosed(newId, { request, subscribers: rows.subscribers(application.id) }, now)
    // A request that cannot be verified is closed, or now closes.
    if (!closed) throw new Error('the request can still be verified')
    return refusalDecision(closed.result, rate, [...charged.changes, ...closed.changes])
  }

  function decideResend(
    rows: Rows,
    call: ResendCall,
    request: OtpRequest,
    now: number,
  ): Decision<SendDecision> {
    const { application, choice, scope, challenge } = call
    const refusedCall = refuseCall(request.template?.variables, choice.channel)
    if (refusedCall) return refusalDecision(refusedCall)
    const loaded = readRequestPhone(rows, keys, request)
    const trust = trustOfRequest(loaded.record, request)
    const usage = { record: loaded.record, trust, isLimited: hasPhoneBudgets(request) }
    const charged = chargeSend(needs, rows, application, usage, now)
    const refusedSend = { phone: request.phone, requestId: request.id }
    if (isRejected(charged)) return limitRefusal(charged, refusedSend)
    const { rate } = charged
    // Both checked before the guard, which counts every message that it lets pass. The phone gets none and is not charged.
    if (request.resends >= resendsMax)
      return refusalDecision(
        reject(resendsExhausted(challenge ? undefined : request.expiresAt - now)),
        rate,
        charged.changes,
      )
    if (challenge && isTooSoon(request, now)) return refusalDecision(reject(resendTooSoon(request, now)))
    const { phone, isVirtual } = toDestination(request)
    const inboxOwnerId = isVirtual ? rows.virtualPhoneOwner(phone) : application.developerId
    if (inboxOwnerId === undefined) return refusalDecision(reject(invalidPhone()))
    const described = describeResend(rows, call, request, loaded.record, now)
    const { verdict, guardChanges } = judgeMessage(needs, rows, application.id, described, now)
    const { alert } = verdict
    const changes = [...charged.changes, ...guardChanges]
    if (verdict.challenge === 'needed') {
      const refused = { answer: challenge, rate, refusedSend, changes }
      const challenged = challengeRefusal(needs, verdict, now, refused)
      if (challenged) return challenged
    }
    const subscribers = rows.subscribers(application.id)
    if (verdict.blocked) {
      changes.push(blockedAgain(newId, request, 'resend', verdict, subscribers, now))
      const rejected = reject(destinationBlocked({ requestId: request.id }))
      const refused = refusalDecision(rejected, rate, changes, alert)
      return scope ? withResult(refused, scope, now) : refused
    }
    const delivered = startMessage(choice, request, described.message)
    if (isRejected(delivered)) return refusalDecision(delivered)
    const resent = withMessage(request, delivered, now)
    const { isOverBudget } = charged
    const earlier = rows.messages(request.id)
    const queued = attempts.enqueue(resent, rows.caller(application), earlier, delivered.channels, now)
    changes.push(
      { kind: 'phone', handle: loaded, record: charged.record },
      { kind: 'request', request: resent, isNew: false },
      ...queued.changes,
      countChange(resent, { queued: 1 }, utcDay(now)),
      ...(resent.provider === inboxProvider ? [breakdownChange(resent, { sent: 1 }, now)] : []),
      ...sentChanges(
        newId,
        { request: resent, subscribers, inboxOwnerId, isOverBudget, verdict, detail: 'resend' },
        now,
      ),
    )
    const { outgoing } = queued
    const result = { replayed: false as const, rate, result: resent, alert, outgoing }
    return scope ? withResult({ result, changes }, scope, now) : { result, changes }
  }

  /** Chooses the channels of the message, and how it begins. @returns the refusal DELIVERY_FAILED without a route */
  function startMessage(choice: ChannelChoice, request: OtpRequest, message: GuardedMessage) {
    const routes = delivery.routesFor(toDestination(request))
    const refused = guard.refusedChannels(message)
    // A text of the caller's own is for the channel that its façade names.
    const channel = choice.channel ?? (request.ownText === null ? undefined : request.channel)
    const channels = resendChannels(routes, request, { ...choice, channel }, refused)
    if (routes.candidatesFor(channels).length === 0)
      return deliveryFailed({ requestId: request.id }, 'no_route', { channels, country: request.country })
    return { channels, ...startDelivery(routes, channels, request) }
  }

  /** Names the rows of a resend, once its request is there. */
  function nameRows(rows: Rows, call: ResendCall): NamedRows {
    const { application, finder, scope } = call
    const now = rows.now()
    const limit = otpRateLimit(plans, rows.caller(application), 'send')
    const messages = earlierRequest(rows, scope, now)
    const request = finder.find(rows, now)
    // One that has ended is refused without them. Its phone may have been replaced by a pseudonym, or erased.
    if (!request || !isVerifiable(request, now))
      return { ...finder.nameRows(rows), limit, messages, subscribers: application.id }
    const { record } = readRequestPhone(rows, keys, request)
    return {
      ...finder.nameRows(rows),
      ...namePhoneRows(rows, keys, request),
      ...nameJudgeRows(needs, rows, describeResend(rows, call, request, record, now), now),
      limit,
      messages: [request.id, ...messages],
      subscribers: application.id,
      virtualPhone: isVirtualPhone(request.phone) ? request.phone : undefined,
    }
  }

  /** Describes the message to the guard. */
  function describeResend(
    rows: Rows,
    { application, choice, challenge }: ResendCall,
    request: OtpRequest,
    record: PhoneRecord,
    now: number,
  ) {
    const { listing, sender } = readSender(rows, application, record, request, now)
    const { numberType } = parsePhone(request.phone)
    const channels = [choice.channel ?? request.channel]
    const appCountries = rows.caller(application).countries
    const estimatePrice = () => delivery.estimatePrice(toDestination(request), channels)
    const message = { ...request, numberType, channels, listing, appCountries, challenge, estimatePrice }
    return { message, sender }
  }
}

/** The request with one more message. */
function withMessage(
  request: OtpRequest,
  { channel, provider, deliveryStatus }: Pick<OtpRequest, 'channel' | 'provider' | 'deliveryStatus'>,
  now: number,
): OtpRequest {
  const { compat } = request
  return {
    ...request,
    channel,
    provider,
    deliveryStatus,
    compat: compat && { ...compat, messages: [...compat.messages, { channel, sentAt: now }] },
    resends: request.resends + 1,
    sentAt: now,
    updatedAt: now,
  }
}
