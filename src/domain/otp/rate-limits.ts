import type { CallingApplication } from '../model/application.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import { chargeRateLimit } from '../limits/rate-limit.ts'
import { afterSend, requireSendBudget } from '../limits/send-budget.ts'
import { withLane, type Lane, type PhoneRecord } from '../model/phone-record.ts'
import type { RateLimit, RateState, StoredPolicy } from '../model/rate-limit.ts'
import type { Stores } from '../store/store.ts'
import type { OtpNeeds } from './operations.ts'
import { minuteMs } from '../../shared/durations.ts'

/** Operations with a rate limit. A resend counts as a send. */
export type RatedOperation = 'send' | 'verify'

/** Rate limit of one application for an operation, as its developer's plan sets it. */
export function otpRateLimit(
  plans: Plans,
  application: CallingApplication,
  operation: RatedOperation,
): RateLimit<StoredPolicy> {
  const plan = resolvePlan(plans, application.plan)
  return {
    policy: `otp-${operation}`,
    subject: application.id,
    limit: operation === 'send' ? plan.sendPerMinute : plan.verifyPerMinute,
    windowMs: minuteMs,
  }
}

/**
 * Charges the application's rate and the phone's send budget in one lane. Both are checked before either is charged: a
 * refusal writes nothing.
 *
 * @param usage.isLimited whether the phone has budgets
 * @returns the record with the send, which the caller saves
 * @throws RATE_LIMITED (APP_RATE, PHONE_SEND_BUDGET)
 */
export async function chargeSendLimits(
  tx: Pick<Stores, 'rateLimits'>,
  { plans, sendBudget }: Pick<OtpNeeds, 'plans' | 'sendBudget'>,
  application: CallingApplication,
  { record, lane, isLimited }: { record: PhoneRecord; lane: Lane; isLimited: boolean },
  now: number,
): Promise<{ rate: RateState | undefined; record: PhoneRecord; isOverBudget: boolean }> {
  const mode = isLimited ? sendBudget() : 'off'
  const { sends } = record.lanes[lane]
  const isOverBudget = requireSendBudget(mode, sends, now)
  const rate = await chargeRateLimit(tx, otpRateLimit(plans, application, 'send'), now, 'APP_RATE')
  const counted = mode === 'off' ? record : withLane(record, lane, { sends: afterSend(sends, now) })
  return { rate, record: { ...counted, lastSentAt: now }, isOverBudget }
}
