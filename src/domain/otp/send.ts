import { utcDay } from '../log/analytics.ts'
import { revalidateCaller, type CallingApplication } from '../apps/authentication.ts'
import { firstAttemptResult } from './delivery-attempts.ts'
import { toDestination, inboxProvider, type Destination } from '../model/delivery.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { recordEvent } from '../log/events.ts'
import { recordBlockedResend, recordBlockedSend, recordFlagged } from '../guard/blocked.ts'
import { withGuard, type Guard } from '../guard/guard.ts'
import {
  runIdempotently,
  saveResult,
  type IdempotencyScope,
  type DeferredResult,
} from '../limits/idempotency.ts'
import { isId } from '../model/ids.ts'
import { hashPhone } from '../model/keys.ts'
import { deriveCode, hashCode, type CodeSource } from '../model/code.ts'
import { terminalErrorFor, type OtpNeeds } from './lifecycle.ts'
import { otpRateLimit } from './rates.ts'
import { resendAfterMs, resendsMax, type Channel, type OtpRequest } from '../model/request.ts'
import { invalidPhone, parsePhone } from '../model/phone.ts'
import { chargeRateLimit, type RateState } from '../limits/rate-limit.ts'
import { chargePhoneBudget } from '../limits/send-budget.ts'
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

export type SentOtp = {
  requestId: string
  phone: string
  status: 'pending'
  expiresAt: number
  /** Which message of the request a provider is asked to carry; null for one that stays in the inbox. */
  message: number | null
}

export type SendResult = SentOtp & {
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
type ChargeLimits = (phone: string | undefined) => Promise<boolean>

type Work = (
  tx: Stores,
  now: number,
  chargeLimits: ChargeLimits,
  guard: Guard,
) => Promise<SentOtp | ServiceError>

export function createOtpSend(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans, delivery, attempts } = needs

  /**
   * Does `work` once for its idempotency key, and completes the answer with what is never stored.
   *
   * @param getCreatedRequest the request that `work` has made, which saves reading it again
   */
  async function runIdempotentSend(
    application: CallingApplication,
    scope: IdempotencyScope | undefined,
    work: Work,
    getCreatedRequest: () => CodeSource | undefined = () => undefined,
  ): Promise<SendResult> {
    let rate: RateState | undefined
    let refusal: ServiceError | undefined
    try {
      const workWithGuard = (guard: Guard) => async (tx: Stores) => {
        const now = clock.now()
        await revalidateCaller(tx, application)
        const chargeLimits: ChargeLimits = async (phone) => {
          const chargeRate = async () => {
            rate = await chargeRateLimit(tx, otpRateLimit(plans, application, 'send'), now, 'APP_RATE')
          }
          if (phone !== undefined) {
            const subject = `${application.id}:${hashPhone(keys, phone)}`
            return chargePhoneBudget(tx, needs.sendBudget, subject, now, chargeRate)
          }
          await chargeRate()
          return false
        }
        const result = await work(tx, now, chargeLimits, guard)
        refusal = result instanceof ServiceError ? result : undefined
        return result
      }
      const { value, replayed } = await withGuard(needs.guard, (guard) =>
        runIdempotently(store, clock, scope, workWithGuard(guard), { deferred: deferredResult }),
      )
      if (!replayed) refusal = await makeFirstAttempt(value, scope)
      if (refusal) throw refusal
      const createdRequest = replayed ? undefined : getCreatedRequest()
      return {
        ...value,
        replayed,
        rate,
        code: await codeToShow(application, value.requestId, createdRequest),
      }
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
  async function makeFirstAttempt(sent: SentOtp, scope: IdempotencyScope | undefined) {
    const { requestId, message } = sent
    if (message === null) return undefined
    return attempts.makeFirstAttempt({ requestId, message }, async (tx, refused) => {
      if (scope) await saveResult(tx, scope, refused ?? sent)
    })
  }

  /** The answer of a send is final after its first attempt. */
  const deferredResult: DeferredResult<SentOtp> = {
    isPending: ({ message }) => message !== null,
    async resolve(tx, sent) {
      const { requestId, message } = sent
      if (message === null) return sent
      const attemptResult = await firstAttemptResult(tx, { requestId, message }, clock.now())
      return attemptResult && (attemptResult.refusal ?? sent)
    },
  }

  /** How a message to this destination begins: in the inbox, or waiting for a provider. */
  function initialDelivery(destination: Destination, channels: Channel[]) {
    const isInboxOnly = delivery.candidatesFor(destination, channels)[0]?.provider === inboxProvider
    return { isInboxOnly, deliveryStatus: isInboxOnly ? null : ('queued' as const) }
  }

  /** A resend goes on where the last message went, and to the next channel where that one did not arrive. */
  function resendChannels(request: OtpRequest, destination: Destination): Channel[] {
    const channels = delivery.channelsFor(destination)
    const index = channels.indexOf(request.channel)
    if (index === -1) return [request.channel]
    const remainingChannels = channels.slice(request.deliveryStatus === 'undelivered' ? index + 1 : index)
    return remainingChannels.length > 0 ? remainingChannels : channels
  }

  async function codeToShow(
    application: CallingApplication,
    requestId: string,
    createdRequest: CodeSource | undefined,
  ): Promise<string | undefined> {
    if (application.environment !== 'test') return undefined
    const request = createdRequest ?? (await store.read.otpRequests.find(requestId))
    return request && deriveCode(keys, request)
  }

  /** Writes that a message goes out, and lays it into the inbox where it stays. */
  async function recordMessage(
    tx: Stores,
    request: OtpRequest,
    inboxOwnerId: string,
    now: number,
    detail: string | null,
  ) {
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

  /** Whose inbox a message to this number falls into. @throws INVALID_PHONE_NUMBER a virtual number of nobody */
  async function findInboxOwnerId(
    tx: Stores,
    phone: string,
    isVirtual: boolean,
    sender: string,
  ): Promise<string> {
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
    ): Promise<SendResult> {
      const { phone, country, isVirtual } = parsePhone(input.phone)
      const environment = application.environment
      const destination = { environment, phone, country, appId: application.id, isVirtual }
      let createdRequest: OtpRequest | undefined
      const work: Work = async (tx, now, chargeLimits, guard) => {
        const inboxOwnerId = await findInboxOwnerId(tx, phone, isVirtual, application.developerId)
        const isOverBudget = await chargeLimits(phone)
        const id = newId('otp')
        const salt = new Uint8Array(16)
        needs.random(salt)
        const codeSalt = salt.toBase64({ alphabet: 'base64url', omitPadding: true })
        const code = deriveCode(keys, { id, codeSalt, phone, environment })
        const channels = input.channel ? [input.channel] : delivery.channelsFor(destination)
        const { isInboxOnly, deliveryStatus } = initialDelivery(destination, channels)
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
          provider: isInboxOnly ? inboxProvider : null,
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
        const verdict = await guard.evaluate(tx, request, now)
        if (verdict.blocked) return recordBlockedSend(tx, newId, request, verdict, now)
        await tx.otpRequests.insert(request)
        if (!isInboxOnly) await attempts.enqueue(tx, { requestId: id, message: 0 }, channels, now)
        await tx.analytics.add(application.developerId, utcDay(now), { requests: 1, sent: 1 })
        if (isOverBudget) await recordEvent(tx, newId, 'guard.flagged', request, now, 'PHONE_SEND_BUDGET')
        await recordFlagged(tx, newId, request, verdict, now)
        await recordMessage(tx, request, inboxOwnerId, now, null)
        createdRequest = request
        return toSentOtp(request)
      }
      return runIdempotentSend(application, scope, work, () => createdRequest)
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
    ): Promise<SendResult> {
      return runIdempotentSend(application, scope, async (tx, now, chargeLimits, guard) => {
        const existing = isId('otp', input.requestId) ? await tx.otpRequests.find(input.requestId) : undefined
        const request = existing?.appId === application.id ? existing : undefined
        const isOverBudget = await chargeLimits(request?.phone)
        if (!request) return notFound()
        const refusal = await terminalErrorFor(tx, newId, request, now)
        if (refusal) return refusal
        const destination = toDestination(request)
        const channels = input.channel ? [input.channel] : resendChannels(request, destination)
        const { isInboxOnly, deliveryStatus } = initialDelivery(destination, channels)
        const previousProvider = request.provider === inboxProvider ? null : request.provider
        const nextMessage = {
          channel: channels[0] ?? request.channel,
          provider: isInboxOnly ? inboxProvider : previousProvider,
          deliveryStatus,
        }
        // Asked before: what the guard counts must go out.
        if (!canResend(request, now)) return resendRefusal(request, now)
        const verdict = await guard.evaluate(tx, request, now)
        if (verdict.blocked) return recordBlockedResend(tx, newId, request, verdict, now)
        const sent = await tx.otpRequests.countResend(request.id, nextMessage, now)
        if (!sent) return resendRefusal(request, now)
        const key = { requestId: sent.id, message: sent.resends }
        if (!isInboxOnly) await attempts.enqueue(tx, key, channels, now)
        await tx.analytics.add(application.developerId, utcDay(now), { sent: 1 })
        if (isOverBudget) await recordEvent(tx, newId, 'guard.flagged', sent, now, 'PHONE_SEND_BUDGET')
        await recordFlagged(tx, newId, sent, verdict, now)
        const inboxOwnerId = await findInboxOwnerId(
          tx,
          sent.phone,
          destination.isVirtual,
          application.developerId,
        )
        await recordMessage(tx, sent, inboxOwnerId, now, 'resend')
        return toSentOtp(sent)
      })
    },
  }
}

const toSentOtp = (request: OtpRequest): SentOtp => ({
  requestId: request.id,
  phone: request.phone,
  status: 'pending',
  expiresAt: request.expiresAt,
  message: request.provider === inboxProvider ? null : request.resends,
})

const canResend = ({ resends, sentAt }: OtpRequest, now: number) =>
  resends < resendsMax && sentAt + resendAfterMs <= now

/** Why a pending request cannot be sent again now. Too soon is thrown: a refused call counts for no limit. */
function resendRefusal(request: OtpRequest, now: number): ServiceError {
  if (request.resends >= resendsMax) {
    return new ServiceError(
      'CONFLICT',
      `This code was already resent ${resendsMax} times, the maximum. Send a new code.`,
      {
        reason: 'RESENDS_EXHAUSTED',
        metadata: { resendsMax },
      },
    )
  }
  throw new ServiceError(
    'RATE_LIMITED',
    `This code was sent less than ${resendAfterMs / 1000} seconds ago. Wait, then resend.`,
    {
      reason: 'RESEND_TOO_SOON',
      retryAfterSeconds: Math.max(1, Math.ceil((request.sentAt + resendAfterMs - now) / 1000)),
    },
  )
}
