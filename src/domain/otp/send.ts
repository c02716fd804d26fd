import { utcDay } from '../log/analytics.ts'
import { revalidateCaller } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { toDestination, inboxProvider } from '../model/delivery.ts'
import { notFound } from '../model/errors.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import { recordBlockedResend, recordBlockedSend, recordFlagged } from '../guard/blocked.ts'
import { recordGuardAlert } from '../guard/alert.ts'
import type { GuardVerdict } from '../guard/judge.ts'
import type { GuardAlert } from '../model/guard.ts'
import { ReplayedError } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { isId } from '../model/ids.ts'
import { hashContexts } from '../model/context.ts'
import { laneFor } from '../model/phone-record.ts'
import { deriveStoredCode, type StoredCodeSource } from '../model/code.ts'
import type { OtpNeeds } from './operations.ts'
import { chargeSendLimits, otpRateLimit } from './rate-limits.ts'
import { senderOf } from './sender.ts'
import { rejectIfClosed } from './lifecycle.ts'
import {
  buildRequest,
  isTooSoon,
  resendChannels,
  resendsExhausted,
  resendTooSoon,
  startDelivery,
  toSentOtp,
  type SendInput,
  type SentOtp,
} from './outgoing.ts'
import {
  closedRequestError,
  isExpired,
  requireReadablePhone,
  resendsMax,
  type Channel,
  type OtpRequest,
} from '../model/request.ts'
import { invalidPhone, parsePhone } from '../model/phone.ts'
import { chargeRateLimit } from '../limits/rate-limit.ts'
import type { RateState } from '../model/rate-limit.ts'
import { hasPhoneBudgets, laneOf, loadPhone, withRequest } from './phones.ts'
import { commitOnce, type Outcome, type Replay } from './send-once.ts'
import type { Stores } from '../store/store.ts'

export type SendResult = SentOtp & {
  /** Only in `test` applications, whose messages are never sent. */
  code: string | undefined
  replayed: boolean
  rate: RateState | undefined
}

/**
 * Sends and resends codes. Each operation reads top to bottom: one transaction that authenticates, charges
 * the limits, builds the message, asks the guard and persists; then, once that is committed, the first
 * attempt at delivery.
 */
export function createOtpSend(needs: OtpNeeds) {
  const { store, newId, keys, plans, delivery, attempts } = needs

  return {
    /**
     * Creates a code for a phone and sends it. Atomic: the request, its events, its message and its counters.
     *
     * @throws INVALID_PHONE_NUMBER
     * @throws UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
     * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET); nothing was written
     * @throws IDEMPOTENCY_KEY_REUSED when the key was used with a different body
     * @throws CONFLICT (IDEMPOTENCY_IN_PROGRESS)
     * @throws DESTINATION_BLOCKED by the guard; the request has failed
     * @throws DELIVERY_FAILED when no provider accepted the message and none will be tried again; the request
     *   has failed
     */
    async send(
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const phone = parsePhone(input.phone)
      const committed = await commitOnce(needs, scope, async (tx, guard, now) => {
        await revalidateCaller(tx, application)
        // First: invalid numbers are all refused alike, whatever the limits say.
        const inboxOwnerId = await requireInboxOwnerId(tx, phone, application)
        const { developerId, environment } = application
        const loaded = await loadPhone(tx, keys, { ...phone, developerId, environment })
        const { clientIp = null, deviceId = null } = input
        const contexts = hashContexts(keys, developerId, { clientIp, deviceId })
        const lane = laneFor(loaded.record, contexts, now)
        const usage = { record: loaded.record, lane, isLimited: hasPhoneBudgets({ environment, ...phone }) }
        const { rate, record, isOverBudget } = await chargeSendLimits(tx, needs, application, usage, now)
        const routes = delivery.routesFor({
          environment: application.environment,
          appId: application.id,
          ...phone,
        })
        const channels = input.channel ? [input.channel] : [...routes.channels]
        const codeSource = { id: newId('otp'), codeSalt: newCodeSalt() }
        const origin = { contexts, lane, previousRequest: record.newestRequest }
        const request = buildRequest(
          keys,
          { codeSource, application, phone, origin, input, routes, channels },
          now,
        )
        await tx.phones.save(loaded, withRequest(record, request))
        const message = { ...request, costlyType: phone.costlyType }
        const verdict = await guard.evaluate(tx, message, senderOf(record, request), now)
        if (verdict.blocked) return charged(rate, await recordBlockedSend(tx, newId, request, verdict, now))
        await tx.otpRequests.insert(request)
        await enqueue(tx, request, channels, now)
        await tx.analytics.add(request.developerId, utcDay(now), { requests: 1, sent: 1 })
        await recordSent(tx, { request, inboxOwnerId, isOverBudget, verdict, detail: null }, now)
        return charged(rate, request, verdict.alert)
      })
      return completeSend(application, scope, committed)
    },

    /**
     * Sends the same code once more: same request, attempts and expiry. Counts as a send.
     *
     * @throws as for a send, except that the request stays pending when the guard blocks the message
     * @throws NOT_FOUND no such request of this application
     * @throws ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed
     * @throws CONFLICT (RESENDS_EXHAUSTED)
     * @throws RATE_LIMITED (RESEND_TOO_SOON); nothing was written
     */
    async resend(
      application: CallingApplication,
      input: { requestId: string; channel?: Channel | undefined },
      scope?: IdempotencyScope,
    ): Promise<SendResult> {
      const committed = await commitOnce(needs, scope, async (tx, guard, now) => {
        await revalidateCaller(tx, application)
        const existing = isId('otp', input.requestId) ? await tx.otpRequests.find(input.requestId) : undefined
        const request = existing?.appId === application.id ? existing : undefined
        if (request?.status !== 'pending' || isExpired(request, now)) {
          // Charged, so that ids cannot be probed for free.
          const rate = await chargeRateLimit(tx, otpRateLimit(plans, application, 'send'), now, 'APP_RATE')
          const rejected = request && (await rejectIfClosed(tx, newId, request, now))
          return charged(rate, rejected ?? reject(notFound()))
        }
        requireReadablePhone(request)
        const loaded = await loadPhone(tx, keys, request)
        const usage = {
          record: loaded.record,
          lane: laneOf(request),
          isLimited: hasPhoneBudgets(request),
        }
        const { rate, record, isOverBudget } = await chargeSendLimits(tx, needs, application, usage, now)
        await tx.phones.save(loaded, record)
        // Both checked before the guard, which counts every message that it lets pass.
        if (request.resends >= resendsMax) return charged(rate, reject(resendsExhausted()))
        if (isTooSoon(request, now)) throw resendTooSoon(request, now)
        const destination = toDestination(request)
        const routes = delivery.routesFor(destination)
        const channels = resendChannels(routes, request, input.channel)
        const message = { ...request, costlyType: parsePhone(request.phone).costlyType }
        const verdict = await guard.evaluate(tx, message, senderOf(record, request), now)
        if (verdict.blocked) return charged(rate, await recordBlockedResend(tx, newId, request, verdict, now))
        const nextDelivery = startDelivery(routes, channels, request)
        const resent = await tx.otpRequests.countResend(request.id, nextDelivery, now)
        // Another node's sweeper or worker closed it: they do not take the lock on the application.
        if (!resent) throw closedRequestError((await tx.otpRequests.find(request.id)) ?? request)
        await enqueue(tx, resent, channels, now)
        await tx.analytics.add(resent.developerId, utcDay(now), { sent: 1 })
        // Late: the number was valid when the code was first sent, so refusals above need not look it up.
        const inboxOwnerId = await requireInboxOwnerId(tx, destination, application)
        await recordSent(tx, { request: resent, inboxOwnerId, isOverBudget, verdict, detail: 'resend' }, now)
        return charged(rate, resent, verdict.alert)
      })
      return completeSend(application, scope, committed)
    },
  }

  /**
   * Turns the committed outcome into the caller's result; makes the first attempt of a new message. Runs after
   * the commit, which makes sure that every code on its way can be verified.
   *
   * @throws the refusal of the transaction, of the attempt (DELIVERY_FAILED) or of the earlier call
   */
  async function completeSend(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    committed: Outcome | Replay,
  ): Promise<SendResult> {
    if (committed.replayed) return replayEarlier(application, committed.result)
    const { result, rate, alert } = committed
    if (alert) needs.guard.onAlert(alert)
    if (isRejected(result)) throw attachRate(result, rate)
    const sent = toSentOtp(result)
    const failed = await makeFirstAttempt(sent, scope)
    if (failed) throw attachRate(failed, rate)
    return { ...sent, replayed: false, rate, code: codeToShow(application, result) }
  }

  /** Repeats the result of an earlier call with the same idempotency key. @throws that call's refusal */
  async function replayEarlier(
    application: CallingApplication,
    sent: SentOtp | Rejected,
  ): Promise<SendResult> {
    if (isRejected(sent)) throw new ReplayedError(sent.rejected)
    const code = await replayedCode(application, sent.requestId)
    return { ...sent, replayed: true, rate: undefined, code }
  }

  /** @returns the refusal if the message failed for good */
  async function makeFirstAttempt(sent: SentOtp, scope: IdempotencyScope | undefined) {
    const { requestId, message } = sent
    if (message === null) return undefined
    return attempts.makeFirstAttempt({ requestId, message }, { scope, value: sent })
  }

  function codeToShow(application: CallingApplication, request: StoredCodeSource): string | undefined {
    return application.environment === 'test' ? deriveStoredCode(keys, request) : undefined
  }

  /** Derives the code again, since codes are never stored. */
  async function replayedCode(application: CallingApplication, requestId: string) {
    if (application.environment !== 'test') return undefined
    const request = await store.read.otpRequests.find(requestId)
    return request && codeToShow(application, request)
  }

  /**
   * Finds whose inbox a message to this phone goes to.
   *
   * @throws INVALID_PHONE_NUMBER a virtual number without owner
   */
  async function requireInboxOwnerId(
    tx: Pick<Stores, 'developers'>,
    { phone, isVirtual }: { phone: string; isVirtual: boolean },
    { developerId }: CallingApplication,
  ): Promise<string> {
    if (!isVirtual) return developerId
    const owner = await tx.developers.findByVirtualPhone(phone)
    if (!owner) throw invalidPhone()
    return owner.id
  }

  /** Puts the request's newest message into the outbox, unless it stays in the inbox. */
  async function enqueue(
    tx: Pick<Stores, 'otpDeliveries'>,
    request: OtpRequest,
    channels: Channel[],
    now: number,
  ): Promise<void> {
    if (request.provider === inboxProvider) return
    await attempts.enqueue(tx, { requestId: request.id, message: request.resends }, channels, now)
  }

  /**
   * Writes the log entries of a message and, if no provider gets it, its inbox row. Last in the transaction:
   * lock order.
   */
  async function recordSent(
    tx: Pick<Stores, EventTables | 'inbox'>,
    sent: {
      request: OtpRequest
      inboxOwnerId: string
      isOverBudget: boolean
      verdict: GuardVerdict
      detail: 'resend' | null
    },
    now: number,
  ): Promise<void> {
    const { request, inboxOwnerId, isOverBudget, verdict, detail } = sent
    if (verdict.alert) await recordGuardAlert(tx, newId, request, verdict.alert, now)
    if (isOverBudget) await recordEvent(tx, newId, 'guard.flagged', request, now, 'PHONE_SEND_BUDGET')
    await recordFlagged(tx, newId, request, verdict, now)
    const seq = await recordEvent(tx, newId, 'otp.sent', request, now, detail)
    if (request.provider !== inboxProvider) return
    await tx.inbox.insert({
      seq,
      developerId: inboxOwnerId,
      requestId: request.id,
      requestVisible: inboxOwnerId === request.developerId ? 1 : 0,
      sentAt: now,
    })
  }

  function newCodeSalt(): string {
    const salt = new Uint8Array(16)
    needs.random(salt)
    return salt.toBase64({ alphabet: 'base64url', omitPadding: true })
  }
}

/** The outcome of a transaction that charged the limits. */
const charged = (
  rate: RateState | undefined,
  result: OtpRequest | Rejected,
  alert?: GuardAlert,
): Outcome => ({ replayed: false, rate, result, alert })
