import { utcDay } from '../log/analytics.ts'
import { revalidateCaller } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { attachRate, isRejected, reject, type Rejected } from '../model/rejected.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import { withGuard } from '../guard/fail-open.ts'
import type { Guard } from '../guard/guard.ts'
import { afterVerification } from './identities.ts'
import { isId } from '../model/ids.ts'
import { withLane, type PhoneRecord } from '../model/phone-record.ts'
import { attemptsMax, matchesCode } from '../model/code.ts'
import type { OtpNeeds } from './operations.ts'
import { otpRateLimit } from './rate-limits.ts'
import { closeRequests, publishClosed, rejectIfClosed, type LifecycleTables } from './lifecycle.ts'
import { closedRequestError, requireReadablePhone, type OtpRequest } from '../model/request.ts'
import { afterFailure, requireCheckBudget } from '../limits/check-budget.ts'
import type { LoadedPhone } from '../store/phones.ts'
import { hasPhoneBudgets, laneOf, loadPhone } from './phones.ts'
import { senderOf } from './sender.ts'
import { chargeRateLimit } from '../limits/rate-limit.ts'
import type { RateState } from '../model/rate-limit.ts'
import type { Stores } from '../store/store.ts'

export type VerifyResult = { request: OtpRequest; rate: RateState | undefined }

/** Verifies codes. */
export function createOtpVerify(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans } = needs

  /** Checks the budget of the request's lane. @throws RATE_LIMITED (PHONE_CHECK_BUDGET) */
  function requireBudget(request: OtpRequest, { record }: LoadedPhone, now: number) {
    if (isLimited(request)) requireCheckBudget(checksOf(request, record), needs.checkFailuresMax, now)
  }

  /** Counts a wrong code in the lane of the send that made the request. */
  async function recordFailure(
    tx: Pick<Stores, 'phones'>,
    request: OtpRequest,
    phone: LoadedPhone,
    now: number,
  ): Promise<void> {
    if (!isLimited(request)) return
    const checks = afterFailure(checksOf(request, phone.record), now)
    await tx.phones.save(phone, withLane(phone.record, laneOf(request), { checks }))
  }

  const isLimited = (request: OtpRequest) => needs.checkFailuresMax > 0 && hasPhoneBudgets(request)

  /**
   * Counts the attempt and, with the right code, verifies the request in one conditional UPDATE. If that
   * statement finds the request closed or its attempts used up, the result of the comparison is discarded.
   */
  async function check(
    tx: Pick<Stores, LifecycleTables | 'guard' | 'phones'>,
    guard: Guard,
    attempt: { request: OtpRequest; code: string; phone: LoadedPhone },
    now: number,
  ): Promise<OtpRequest | Rejected> {
    const { request, code, phone } = attempt
    const rejected = await rejectIfClosed(tx, newId, request, now)
    if (rejected) return rejected
    const isRight = matchesCode(keys, request.id, code, request.codeHash)
    const counted = await tx.otpRequests.countAttempt(request.id, isRight, now)
    if (!counted) return reject(closedRequestError((await tx.otpRequests.find(request.id)) ?? request))
    const countedRequest = { ...request, ...counted }
    if (!isRight) {
      await recordFailure(tx, request, phone, now)
      const attemptsRemaining = attemptsMax - countedRequest.attempts
      const terminalState = { status: 'failed', failureReason: 'max_attempts' } as const
      // Closed before any log entry and published after: lock order, see closeRequests.
      const closedRequests =
        attemptsRemaining === 0 ? await closeRequests(tx, [request.id], terminalState, now) : []
      await recordEvent(tx, newId, 'otp.attempt_failed', countedRequest, now)
      for (const closedRequest of closedRequests) await publishClosed(tx, newId, closedRequest, now)
      // The last wrong code gets this error too, with 0 attempts left; only later calls get ATTEMPTS_EXHAUSTED.
      return reject(
        new ServiceError('INVALID_CODE', 'The code is wrong. Check it and enter it again.', {
          metadata: { attemptsRemaining },
        }),
      )
    }
    const { record, ...days } = afterVerification(phone.record, newId, countedRequest, now)
    await tx.phones.save(phone, record)
    await guard.recordConversion(tx, countedRequest, senderOf(phone.record, countedRequest), now)
    await recordVerified(tx, countedRequest, days, now)
    return countedRequest
  }

  /** Records a verified request: its counters and log entry. */
  async function recordVerified(
    tx: Pick<Stores, EventTables | 'analytics'>,
    request: OtpRequest,
    { removedFromDay, addedToDay }: Omit<ReturnType<typeof afterVerification>, 'record'>,
    now: number,
  ) {
    const { developerId } = request
    if (removedFromDay !== undefined) await tx.analytics.add(developerId, removedFromDay, { active: -1 })
    await tx.analytics.add(developerId, utcDay(now), {
      verified: 1,
      active: addedToDay === undefined ? 0 : 1,
    })
    await recordEvent(tx, newId, 'otp.verified', request, now)
  }

  return {
    /**
     * Checks a code and, if it is right, marks the request verified.
     *
     * An attempt that is not counted reveals nothing, so that concurrent guesses cannot pass the limit of
     * `attemptsMax`. A wrong code is answered after its attempt is committed, so that a crash cannot give the
     * attempt back. Of several concurrent calls with the right code exactly one succeeds.
     *
     * @param code six ASCII digits
     * @throws INVALID_CODE with the remaining attempts
     * @throws NOT_FOUND no such request of this application
     * @throws ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when the request is closed
     * @throws RATE_LIMITED (APP_RATE, PHONE_CHECK_BUDGET); neither an attempt nor the rate was charged
     * @throws UNAUTHENTICATED or FORBIDDEN when the application changed since its credentials were checked
     */
    async verify(application: CallingApplication, requestId: string, code: string): Promise<VerifyResult> {
      const { rate, result } = await withGuard(needs.guard, (guard) =>
        store.write(async (tx) => {
          const now = clock.now()
          await revalidateCaller(tx, application)
          const existing = isId('otp', requestId) ? await tx.otpRequests.find(requestId) : undefined
          const request = existing?.appId === application.id ? existing : undefined
          if (request) requireReadablePhone(request)
          const phone = request && (await loadPhone(tx, keys, request))
          if (phone) requireBudget(request, phone, now)
          const rate = await chargeRateLimit(tx, otpRateLimit(plans, application, 'verify'), now, 'APP_RATE')
          // The rate was charged for an unknown request too, so that ids cannot be probed for free.
          if (!phone) return { rate, result: reject(notFound()) }
          return { rate, result: await check(tx, guard, { request, code, phone }, now) }
        }),
      )
      if (isRejected(result)) throw attachRate(result, rate)
      return { request: result, rate }
    },
  }
}

const checksOf = (request: OtpRequest, record: PhoneRecord) => record.lanes[laneOf(request)].checks
