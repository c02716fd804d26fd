import { utcDay } from '../log/analytics.ts'
import { revalidateCaller } from '../apps/authentication.ts'
import type { CallingApplication } from '../model/application.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { isRejected, reject, type Rejected } from '../model/rejected.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import { withGuard, type Guard } from '../guard/guard.ts'
import { recordVerification } from './identities.ts'
import { isId } from '../model/ids.ts'
import { hashPhone } from '../model/keys.ts'
import { matchesCode } from '../model/code.ts'
import type { OtpNeeds } from './operations.ts'
import { otpRateLimit } from './rate-limits.ts'
import { closeRequests, publishClosed, rejectIfClosed, type LifecycleTables } from './lifecycle.ts'
import { attemptsMax, closedRequestError, type OtpRequest } from '../model/request.ts'
import { afterFailure, afterSuccess, requireCheckBudget } from '../limits/phone-budgets.ts'
import type { CheckBudget } from '../store/phone-budgets.ts'
import { chargeRateLimit } from '../limits/rate-limit.ts'
import type { RateState } from '../model/rate-limit.ts'
import type { Stores } from '../store/store.ts'

export type VerifyResult = { request: OtpRequest; rate: RateState | undefined }

/** Verifies codes. */
export function createOtpVerify(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans } = needs

  /** Tracks the failed attempts of one phone; undefined if they do not count. */
  function trackCheckBudget(
    tx: Pick<Stores, 'checkBudgets'>,
    application: CallingApplication,
    phone: string,
  ) {
    if (needs.checkFailuresMax === 0 || application.environment === 'test') return undefined
    const phoneHash = hashPhone(keys, phone)
    let budget: CheckBudget | undefined
    return {
      async require(now: number) {
        budget = await tx.checkBudgets.find(application.id, phoneHash)
        requireCheckBudget(budget, needs.checkFailuresMax, now)
      },
      fail: (now: number) => tx.checkBudgets.put(application.id, phoneHash, afterFailure(budget, now)),
      async succeed() {
        if (!budget || budget.consecutiveFailures === 0) return
        await tx.checkBudgets.put(application.id, phoneHash, afterSuccess(budget))
      },
    }
  }

  /**
   * Counts the attempt and, with the right code, verifies the request in one guarded statement. If that
   * statement finds the request closed or its attempts used up, the result of the comparison is discarded.
   */
  async function check(
    tx: Pick<Stores, LifecycleTables | 'guard' | 'identities'>,
    request: OtpRequest,
    code: string,
    budget: ReturnType<typeof trackCheckBudget>,
    guard: Guard,
    now: number,
  ): Promise<OtpRequest | Rejected> {
    const rejected = await rejectIfClosed(tx, newId, request, now)
    if (rejected) return rejected
    const isRight = matchesCode(keys, request.id, code, request.codeHash)
    const attempt = await tx.otpRequests.countAttempt(request.id, isRight, now)
    if (!attempt) return reject(closedRequestError((await tx.otpRequests.find(request.id)) ?? request))
    const countedRequest = { ...request, ...attempt }
    if (!isRight) {
      await budget?.fail(now)
      const attemptsRemaining = attemptsMax - countedRequest.attempts
      const terminalState = { status: 'failed', failureReason: 'max_attempts' } as const
      const closedRequests =
        attemptsRemaining === 0 ? await closeRequests(tx, [request.id], terminalState, now) : []
      await recordEvent(tx, newId, 'otp.attempt_failed', countedRequest, now)
      for (const closedRequest of closedRequests) await publishClosed(tx, newId, closedRequest, now)
      return reject(
        new ServiceError('INVALID_CODE', 'The code is wrong. Check it and enter it again.', {
          metadata: { attemptsRemaining },
        }),
      )
    }
    await budget?.succeed()
    await guard.recordConversion(tx, countedRequest, now)
    await recordSuccess(tx, countedRequest, now)
    return countedRequest
  }

  async function recordSuccess(
    tx: Pick<Stores, EventTables | 'analytics' | 'identities'>,
    request: OtpRequest,
    now: number,
  ) {
    const { developerId } = request
    const { removedFromDay, addedToDay } = await recordVerification(tx, newId, keys, {
      ...request,
      verifiedAt: now,
    })
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
     * five. A wrong code is answered after its attempt is committed, so that no crash returns it. Of several
     * concurrent calls with the right code exactly one succeeds.
     *
     * @param code six ASCII digits
     * @throws INVALID_CODE with the remaining attempts; NOT_FOUND no such request of this application;
     *   ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED when it is closed; RATE_LIMITED
     *   (APP_RATE, PHONE_CHECK_BUDGET) neither an attempt nor the rate was charged; UNAUTHENTICATED or
     *   FORBIDDEN when the application changed since its credentials were checked
     */
    async verify(application: CallingApplication, requestId: string, code: string): Promise<VerifyResult> {
      const { rate, result } = await withGuard(needs.guard, (guard) =>
        store.write(async (tx) => {
          const now = clock.now()
          await revalidateCaller(tx, application)
          const existing = isId('otp', requestId) ? await tx.otpRequests.find(requestId) : undefined
          const request = existing?.appId === application.id ? existing : undefined
          const budget = request && trackCheckBudget(tx, application, request.phone)
          await budget?.require(now)
          const rate = await chargeRateLimit(tx, otpRateLimit(plans, application, 'verify'), now, 'APP_RATE')
          return {
            rate,
            result: request ? await check(tx, request, code, budget, guard, now) : reject(notFound()),
          }
        }),
      )
      if (isRejected(result)) {
        result.rejected.rate = rate
        throw result.rejected
      }
      return { request: result, rate }
    },
  }
}
