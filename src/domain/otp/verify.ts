import { dayOf } from '../log/analytics.ts'
import { recheckCaller, type CallingApplication } from '../apps/authentication.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { recordEvent } from '../log/events.ts'
import { withGuard, type Guard } from '../guard/guard.ts'
import { recordVerification } from './identities.ts'
import { isId } from '../model/ids.ts'
import { hashPhone } from '../model/keys.ts'
import { matchesCode } from '../model/code.ts'
import { markEnded, recordEnd, refusalOf, type OtpNeeds } from './lifecycle.ts'
import { otpRate } from './rates.ts'
import { attemptsMax, endedError, type OtpRequest } from '../model/request.ts'
import { afterFailure, afterSuccess, requireCheckBudget, type CheckBudget } from '../limits/phone-budgets.ts'
import { admit, type RateState } from '../limits/rate-limit.ts'
import type { Stores } from '../store/store.ts'

export type VerifyAnswer = { request: OtpRequest; rate: RateState | undefined }

export function createOtpVerify(needs: OtpNeeds) {
  const { store, clock, newId, keys, plans } = needs

  /** The failures of one phone; absent where they do not count. */
  function budgetOf(tx: Stores, application: CallingApplication, phone: string) {
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
   * Counts the attempt, and with a right code verifies the request, by one guarded statement: what the comparison says
   * counts for nothing where that finds the request ended or its attempts used up. What it returns is committed, a
   * refusal too.
   */
  async function check(
    tx: Stores,
    request: OtpRequest,
    code: string,
    budget: ReturnType<typeof budgetOf>,
    guard: Guard,
    now: number,
  ): Promise<OtpRequest | ServiceError> {
    const refusal = await refusalOf(tx, newId, request, now)
    if (refusal) return refusal
    const isRight = matchesCode(keys, request.id, code, request.codeHash)
    const attempt = await tx.otpRequests.countAttempt(request.id, isRight, now)
    if (!attempt) return endedError((await tx.otpRequests.find(request.id)) ?? request)
    const counted = { ...request, ...attempt }
    if (!isRight) {
      await budget?.fail(now)
      const attemptsRemaining = attemptsMax - counted.attempts
      const exhausted = { status: 'failed', failureReason: 'max_attempts' } as const
      const ended = attemptsRemaining === 0 ? await markEnded(tx, [request.id], exhausted, now) : []
      await recordEvent(tx, newId, 'otp.attempt_failed', counted, now)
      for (const failed of ended) await recordEnd(tx, newId, failed, now)
      return new ServiceError('INVALID_CODE', 'The code is wrong.', { metadata: { attemptsRemaining } })
    }
    await budget?.succeed()
    await guard.credit(tx, counted, now)
    await recordSuccess(tx, counted, now)
    return counted
  }

  async function recordSuccess(tx: Stores, request: OtpRequest, now: number) {
    const { developerId } = request
    const { leavesDay, entersDay } = await recordVerification(tx, newId, keys, {
      ...request,
      verifiedAt: now,
    })
    if (leavesDay !== undefined) await tx.analytics.add(developerId, leavesDay, { active: -1 })
    await tx.analytics.add(developerId, dayOf(now), {
      verified: 1,
      active: entersDay === undefined ? 0 : 1,
    })
    await recordEvent(tx, newId, 'otp.verified', request, now)
  }

  return {
    /**
     * Checks a code and, if it is right, marks the request verified.
     *
     * An attempt that is not counted tells nothing, so that guesses at once cannot pass the limit of five; a wrong one is
     * answered after its commit, so that no crash gives it back. Of several right calls exactly one succeeds.
     *
     * @param code six ASCII digits
     * @throws INVALID_CODE with the attempts that remain; NOT_FOUND no such request of this application;
     *   ALREADY_VERIFIED, OTP_EXPIRED, OTP_CANCELED, ATTEMPTS_EXHAUSTED it has ended; RATE_LIMITED (APP_RATE,
     *   PHONE_CHECK_BUDGET) neither an attempt nor the rate was touched; UNAUTHENTICATED or FORBIDDEN the application
     *   changed since its credentials were checked
     */
    async verify(application: CallingApplication, requestId: string, code: string): Promise<VerifyAnswer> {
      const { rate, result } = await withGuard(needs.guard, (guard) =>
        store.write(async (tx) => {
          const now = clock.now()
          await recheckCaller(tx, application)
          const known = isId('otp', requestId) ? await tx.otpRequests.find(requestId) : undefined
          const request = known?.appId === application.id ? known : undefined
          const budget = request && budgetOf(tx, application, request.phone)
          await budget?.require(now)
          const rate = await admit(tx, otpRate(plans, application, 'verify'), now, 'APP_RATE')
          return { rate, result: request ? await check(tx, request, code, budget, guard, now) : notFound() }
        }),
      )
      if (result instanceof ServiceError) {
        result.rate = rate
        throw result
      }
      return { request: result, rate }
    },
  }
}
