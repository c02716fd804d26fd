import { dayOf } from '../log/analytics.ts'
import { recheckCaller, type CallingApplication } from '../apps/authentication.ts'
import { answerOfMessage } from './delivery-attempts.ts'
import { destinationOf, inboxProvider, type Destination } from '../model/delivery.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { recordEvent } from '../log/events.ts'
import { recordBlockedResend, recordBlockedSend, recordFlagged } from '../guard/blocked.ts'
import { withGuard, type Guard } from '../guard/guard.ts'
import { answerOnce, finishAnswer, type IdempotencyScope, type OpenAnswer } from '../limits/idempotency.ts'
import { isId } from '../model/ids.ts'
import { hashPhone } from '../model/keys.ts'
import { deriveCode, hashCode, type CodeSource } from '../model/code.ts'
import { refusalOf, type OtpNeeds } from './lifecycle.ts'
import { otpRate } from './rates.ts'
import { resendAfterMs, resendsMax, type Channel, type OtpRequest } from '../model/request.ts'
import { invalidPhone, parsePhone } from '../model/phone.ts'
import { admit, type RateState } from '../limits/rate-limit.ts'
import { spendSendBudget } from '../limits/send-budget.ts'
import type { Stores } from '../store/store.ts'

export type SendInput = {
  phone: string
  channel?: Channel | undefined
  locale?: string | undefined
  /** Default: the application's. */
  ttlSeconds?: number | undefined
  metadata?: Record<string, string> | undefined
  /** Of the end user. */
  clientIp?: string | undefined
}

export type Sent = {
  requestId: string
  phone: string
  status: 'pending'
  expiresAt: number
  /** Which message of the request a provider is asked to carry; null for one that stays in the inbox. */
  message: number | null
}

export type SendAnswer = Sent & {
  /** Only in `test` applications, whose messages go nowhere. */
  code: string | undefined
  replayed: boolean
  rate: RateState | undefined
}

/**
 * Spends the phone's budget, if the phone is known, and the application's rate.
 *
 * @returns whether the phone's budget was passed
 */
type TakeLimits = (phone: string | undefined) => Promise<boolean>

type Work = (tx: Stores, now: number, takeLimits: TakeLimits, guard: Guard) => Promise<Sent | ServiceError>

export function createOtpSend(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans, delivery, attempts } = needs

  /**
   * Does `work` once for its idempotency key, and completes the answer with what is never stored.
   *
   * @param made the request that `work` has made, which saves reading it again
   */
  async function answer(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    work: Work,
    made: () => CodeSource | undefined = () => undefined,
  ): Promise<SendAnswer> {
    let rate: RateState | undefined
    let refusal: ServiceError | undefined
    try {
      const guarded = (guard: Guard) => async (tx: Stores) => {
        const now = clock.now()
        await recheckCaller(tx, application)
        const takeLimits: TakeLimits = async (phone) => {
          const takeRate = async () => {
            rate = await admit(tx, otpRate(plans, application, 'send'), now, 'APP_RATE')
          }
          if (phone !== undefined) {
            const subject = `${application.id}:${hashPhone(keys, phone)}`
            return spendSendBudget(tx, needs.sendBudget, subject, now, takeRate)
          }
          await takeRate()
          return false
        }
        const result = await work(tx, now, takeLimits, guard)
        refusal = result instanceof ServiceError ? result : undefined
        return result
      }
      const { value, replayed } = await withGuard(needs.guard, (guard) =>
        answerOnce(store, clock, scope, guarded(guard), { open }),
      )
      if (!replayed) refusal = await firstAttempt(value, scope)
      if (refusal) throw refusal
      const known = replayed ? undefined : made()
      return { ...value, replayed, rate, code: await codeToShow(application, value.requestId, known) }
    } catch (error) {
      // Only a refusal that was returned has cost a call: what is thrown undoes that too.
      if (refusal && error === refusal) refusal.rate = rate
      throw error
    }
  }

  /**
   * Offers the message to the providers, now that nothing can undo its request: a code that is on its way must be one
   * that can be verified.
   *
   * @returns DELIVERY_FAILED nobody takes it, and nobody will
   */
  async function firstAttempt(sent: Sent, scope: IdempotencyScope | undefined) {
    const { requestId, message } = sent
    if (message === null) return undefined
    return attempts.attemptFirst({ requestId, message }, async (tx, refused) => {
      if (scope) await finishAnswer(tx, scope, refused ?? sent)
    })
  }

  /** The answer of a send is final after its first attempt. */
  const open: OpenAnswer<Sent> = {
    isOpen: ({ message }) => message !== null,
    async settle(tx, sent) {
      const { requestId, message } = sent
      if (message === null) return sent
      const answered = await answerOfMessage(tx, { requestId, message }, clock.now())
      return answered && (answered.refusal ?? sent)
    },
  }

  /** How a message to this destination begins: in the inbox, or waiting for a provider. */
  function routeOf(destination: Destination, channels: Channel[]) {
    const staysHere = delivery.waysTo(destination, channels)[0]?.provider === inboxProvider
    return { staysHere, deliveryStatus: staysHere ? null : ('queued' as const) }
  }

  /** A resend goes on where the last message went, and to the next channel where that one did not arrive. */
  function channelsOfResend(request: OtpRequest, destination: Destination): Channel[] {
    const channels = delivery.channelsTo(destination)
    const index = channels.indexOf(request.channel)
    if (index === -1) return [request.channel]
    const following = channels.slice(request.deliveryStatus === 'undelivered' ? index + 1 : index)
    return following.length > 0 ? following : channels
  }

  async function codeToShow(
    application: CallingApplication,
    requestId: string,
    made: CodeSource | undefined,
  ): Promise<string | undefined> {
    if (application.environment !== 'test') return undefined
    const request = made ?? (await store.read.otpRequests.find(requestId))
    return request && deriveCode(keys, request)
  }

  /** Writes that a message goes out, and lays it into the inbox where it stays. */
  async function recordMessage(
    tx: Stores,
    request: OtpRequest,
    inboxOf: string,
    now: number,
    detail: string | null,
  ) {
    const seq = await recordEvent(tx, newId, 'otp.sent', request, now, detail)
    if (request.provider !== inboxProvider) return
    await tx.inbox.insert({
      seq,
      developerId: inboxOf,
      requestId: request.id,
      requestVisible: inboxOf === request.developerId ? 1 : 0,
      sentAt: now,
    })
  }

  /** Whose inbox a message to this number falls into. @throws INVALID_PHONE_NUMBER a virtual number of nobody */
  async function inboxOwner(tx: Stores, phone: string, isVirtual: boolean, sender: string): Promise<string> {
    if (!isVirtual) return sender
    const owner = await tx.developers.findByVirtualPhone(phone)
    if (!owner) throw invalidPhone()
    return owner.id
  }

  return {
    /**
     * Makes a code for a phone. The request, its event, its deliveries and its counters are one transaction.
     *
     * @throws INVALID_PHONE_NUMBER; RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET) nothing was written; UNAUTHENTICATED
     *   or FORBIDDEN the application changed since its credentials were checked; IDEMPOTENCY_KEY_REUSED; CONFLICT;
     *   DELIVERY_FAILED every provider has refused for good: the request has failed; DESTINATION_BLOCKED the guard
     *   lets nothing out, and the request has failed
     */
    async send(
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendAnswer> {
      const { phone, country, isVirtual } = parsePhone(input.phone)
      const environment = application.environment
      const destination = { environment, phone, country, appId: application.id, isVirtual }
      let made: OtpRequest | undefined
      const work: Work = async (tx, now, takeLimits, guard) => {
        const inboxOf = await inboxOwner(tx, phone, isVirtual, application.developerId)
        const flagged = await takeLimits(phone)
        const id = newId('otp')
        const salt = new Uint8Array(16)
        needs.random(salt)
        const codeSalt = salt.toBase64({ alphabet: 'base64url', omitPadding: true })
        const code = deriveCode(keys, { id, codeSalt, phone, environment })
        const channels = input.channel ? [input.channel] : delivery.channelsTo(destination)
        const { staysHere, deliveryStatus } = routeOf(destination, channels)
        const ttlSeconds = input.ttlSeconds ?? application.otpTtlSeconds
        const request: OtpRequest = {
          id,
          developerId: application.developerId,
          projectId: application.projectId,
          appId: application.id,
          environment,
          phone,
          country,
          status: 'pending',
          failureReason: null,
          channel: channels[0] ?? 'sms',
          provider: staysHere ? inboxProvider : null,
          deliveryStatus,
          locale: input.locale ?? null,
          clientIp: input.clientIp ?? null,
          metadata: input.metadata ?? null,
          codeSalt,
          codeHash: hashCode(keys, id, code),
          attempts: 0,
          resends: 0,
          createdAt: now,
          sentAt: now,
          expiresAt: now + ttlSeconds * 1000,
          verifiedAt: null,
          updatedAt: now,
        }
        const verdict = await guard.judge(tx, request, now)
        if (verdict.blocked) return recordBlockedSend(tx, newId, request, verdict, now)
        await tx.otpRequests.insert(request)
        if (!staysHere) await attempts.plan(tx, { requestId: id, message: 0 }, channels, now)
        await tx.analytics.add(application.developerId, dayOf(now), { requests: 1, sent: 1 })
        if (flagged) await recordEvent(tx, newId, 'guard.flagged', request, now, 'PHONE_SEND_BUDGET')
        await recordFlagged(tx, newId, request, verdict, now)
        await recordMessage(tx, request, inboxOf, now, null)
        made = request
        return toSent(request)
      }
      return answer(application, scope, work, () => made)
    },

    /**
     * Sends the same code once more: same request, attempts and expiry. Counts as a send.
     *
     * @throws NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED; CONFLICT (RESENDS_EXHAUSTED);
     *   RATE_LIMITED (RESEND_TOO_SOON, and as send); DESTINATION_BLOCKED by the guard, and the request lives on
     */
    async resend(
      application: CallingApplication,
      input: { requestId: string; channel?: Channel | undefined },
      scope?: IdempotencyScope,
    ): Promise<SendAnswer> {
      return answer(application, scope, async (tx, now, takeLimits, guard) => {
        const known = isId('otp', input.requestId) ? await tx.otpRequests.find(input.requestId) : undefined
        const request = known?.appId === application.id ? known : undefined
        const flagged = await takeLimits(request?.phone)
        if (!request) return notFound()
        const refusal = await refusalOf(tx, newId, request, now)
        if (refusal) return refusal
        const destination = destinationOf(request)
        const channels = input.channel ? [input.channel] : channelsOfResend(request, destination)
        const { staysHere, deliveryStatus } = routeOf(destination, channels)
        const elsewhere = request.provider === inboxProvider ? null : request.provider
        const by = {
          channel: channels[0] ?? request.channel,
          provider: staysHere ? inboxProvider : elsewhere,
          deliveryStatus,
        }
        // Asked before: what the guard counts must go out.
        if (!mayResend(request, now)) return resendRefusal(request, now)
        const verdict = await guard.judge(tx, request, now)
        if (verdict.blocked) return recordBlockedResend(tx, newId, request, verdict, now)
        const sent = await tx.otpRequests.countResend(request.id, by, now)
        if (!sent) return resendRefusal(request, now)
        const key = { requestId: sent.id, message: sent.resends }
        if (!staysHere) await attempts.plan(tx, key, channels, now)
        await tx.analytics.add(application.developerId, dayOf(now), { sent: 1 })
        if (flagged) await recordEvent(tx, newId, 'guard.flagged', sent, now, 'PHONE_SEND_BUDGET')
        await recordFlagged(tx, newId, sent, verdict, now)
        const inboxOf = await inboxOwner(tx, sent.phone, destination.isVirtual, application.developerId)
        await recordMessage(tx, sent, inboxOf, now, 'resend')
        return toSent(sent)
      })
    },
  }
}

const toSent = (request: OtpRequest): Sent => ({
  requestId: request.id,
  phone: request.phone,
  status: 'pending',
  expiresAt: request.expiresAt,
  message: request.provider === inboxProvider ? null : request.resends,
})

const mayResend = ({ resends, sentAt }: OtpRequest, now: number) =>
  resends < resendsMax && sentAt + resendAfterMs <= now

/** Why a pending request cannot be sent again now. Too soon is thrown: a refused call counts for no limit. */
function resendRefusal(request: OtpRequest, now: number): ServiceError {
  if (request.resends >= resendsMax) {
    return new ServiceError('CONFLICT', 'This code was sent as often as it may be. Ask for a new one.', {
      reason: 'RESENDS_EXHAUSTED',
      metadata: { resendsMax },
    })
  }
  throw new ServiceError('RATE_LIMITED', 'This code was sent a moment ago. Wait and try again.', {
    reason: 'RESEND_TOO_SOON',
    retryAfterSeconds: Math.max(1, Math.ceil((request.sentAt + resendAfterMs - now) / 1000)),
  })
}
