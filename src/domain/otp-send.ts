import { dayOf } from './analytics.ts'
import { recheckCaller, type CallingApplication } from './app-auth.ts'
import { inboxProvider } from './delivery.ts'
import { notFound, ServiceError } from './errors.ts'
import { recordEvent } from './events.ts'
import { answerOnce, type IdempotencyScope } from './idempotency.ts'
import { isId } from './ids.ts'
import { hashPhone } from './keys.ts'
import { deriveCode, hashCode } from './otp-code.ts'
import { refusalOf, type OtpNeeds } from './otp-life.ts'
import { otpRate } from './otp-rates.ts'
import { resendAfterMs, resendsMax, type Channel, type OtpRequest } from './otp-requests.ts'
import { invalidPhone, parsePhone } from './phone.ts'
import { admit, type RateState } from './rate-limit.ts'
import { spendSendBudget } from './send-budget.ts'
import type { Stores } from './store.ts'

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

export type Sent = { requestId: string; phone: string; status: 'pending'; expiresAt: number }

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

export function createOtpSend(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans, delivery } = needs

  /** Does `work` once for its idempotency key, and completes the answer with what is never stored. */
  async function answer(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    work: (tx: Stores, now: number, takeLimits: TakeLimits) => Promise<Sent | ServiceError>,
  ): Promise<SendAnswer> {
    let rate: RateState | undefined
    let refusal: ServiceError | undefined
    try {
      const { value, replayed } = await answerOnce(store, clock, scope, async (tx) => {
        const now = clock.now()
        await recheckCaller(tx, application)
        const result = await work(tx, now, async (phone) => {
          const flagged =
            phone !== undefined &&
            (await spendSendBudget(tx, needs.sendBudget, `${application.id}:${hashPhone(keys, phone)}`, now))
          rate = await admit(tx, otpRate(plans, application, 'send'), now, 'APP_RATE')
          return flagged
        })
        if (result instanceof ServiceError) refusal = result
        return result
      })
      return { ...value, replayed, rate, code: await codeToShow(application, value.requestId) }
    } catch (error) {
      // Only a refusal that was returned has cost a call: what is thrown undoes that too.
      if (refusal && error === refusal) refusal.rate = rate
      throw error
    }
  }

  async function codeToShow(application: CallingApplication, requestId: string): Promise<string | undefined> {
    if (application.environment !== 'test') return undefined
    const request = await store.read.otpRequests.find(requestId)
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
    const eventId = await recordEvent(tx, newId, 'otp.sent', request, now, detail)
    if (request.provider !== inboxProvider) return
    await tx.inbox.insert({
      id: eventId,
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
     *   or FORBIDDEN the application changed since its credentials were checked; IDEMPOTENCY_KEY_REUSED; CONFLICT
     */
    async send(
      application: CallingApplication,
      input: SendInput,
      scope?: IdempotencyScope,
    ): Promise<SendAnswer> {
      const { phone, country, isVirtual } = parsePhone(input.phone)
      const channel = input.channel ?? 'sms'
      const environment = application.environment
      return answer(application, scope, async (tx, now, takeLimits) => {
        const inboxOf = await inboxOwner(tx, phone, isVirtual, application.developerId)
        const flagged = await takeLimits(phone)
        const id = newId('otp')
        const salt = new Uint8Array(16)
        needs.random(salt)
        const codeSalt = Buffer.from(salt).toString('base64url')
        const code = deriveCode(keys, { id, codeSalt, phone, environment })
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
          channel,
          provider: delivery.route({ environment, isVirtual, country, channel }),
          deliveryStatus: null,
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
        await tx.otpRequests.insert(request)
        await tx.analytics.add(application.developerId, dayOf(now), { requests: 1, sent: 1 })
        if (flagged) await recordEvent(tx, newId, 'guard.flagged', request, now, 'PHONE_SEND_BUDGET')
        await recordMessage(tx, request, inboxOf, now, null)
        return toSent(request)
      })
    },

    /**
     * Sends the same code once more: same request, attempts and expiry. Counts as a send.
     *
     * @throws NOT_FOUND; ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED; CONFLICT (RESENDS_EXHAUSTED);
     *   RATE_LIMITED (RESEND_TOO_SOON, and as send)
     */
    async resend(
      application: CallingApplication,
      input: { requestId: string; channel?: Channel | undefined },
      scope?: IdempotencyScope,
    ): Promise<SendAnswer> {
      return answer(application, scope, async (tx, now, takeLimits) => {
        const known = isId('otp', input.requestId) ? await tx.otpRequests.find(input.requestId) : undefined
        const request = known?.appId === application.id ? known : undefined
        const flagged = await takeLimits(request?.phone)
        if (!request) return notFound()
        const refusal = await refusalOf(tx, newId, request, now)
        if (refusal) return refusal
        const sent = await tx.otpRequests.countResend(request.id, input.channel ?? request.channel, now)
        if (!sent) return resendRefusal(request, now)
        await tx.analytics.add(application.developerId, dayOf(now), { sent: 1 })
        if (flagged) await recordEvent(tx, newId, 'guard.flagged', sent, now, 'PHONE_SEND_BUDGET')
        const { isVirtual } = parsePhone(sent.phone)
        const inboxOf = await inboxOwner(tx, sent.phone, isVirtual, application.developerId)
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
})

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
