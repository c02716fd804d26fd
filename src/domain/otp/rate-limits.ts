import type { CallingApplication } from '../model/application.ts'
import { resolvePlanName, type Plans } from '../model/plans.ts'
import { admit, type Charged } from '../limits/rate-limit.ts'
import { afterSend, checkSendBudget } from '../limits/send-budget.ts'
import { isRejected, type Rejected } from '../model/rejected.ts'
import { withUsage, type TrustLevel, type PhoneRecord } from '../model/phone-record.ts'
import type { RateLimit, StoredPolicy } from '../model/rate-limit.ts'
import type { Rows } from '../store/operation.ts'
import { minuteMs } from '../../shared/durations.ts'
import type { OtpNeeds } from './needs.ts'

/** Operations with a rate limit. A resend counts as a send. */
export type RatedCall = 'send' | 'verify'

/** Rate limit of one application for an operation, as its developer's plan sets it. */
export function otpRateLimit(
  plans: Plans,
  application: CallingApplication,
  operation: RatedCall,
): RateLimit<StoredPolicy> {
  const plan = resolvePlanName(plans, application.plan)
  const { sendPerMinute, verifyPerMinute } = plans[plan] ?? plans.free
  const limit = operation === 'send' ? sendPerMinute : verifyPerMinute
  return { policy: `otp-${operation}`, subject: application.id, limit, windowMs: minuteMs, plan }
}

/** Charges the application's rate. @returns the refusal RATE_LIMITED (APP_RATE) */
export function chargeRate(
  { plans }: Pick<OtpNeeds, 'plans'>,
  rows: Rows,
  application: CallingApplication,
  operation: RatedCall,
  now: number,
): Charged | Rejected {
  const limit = otpRateLimit(plans, rows.caller(application), operation)
  return admit(limit, rows.usage(limit), now, 'APP_RATE')
}

/**
 * Charges the application's rate, unless the phone's send budget at its trust level is spent.
 *
 * @param phone.isLimited whether it has budgets
 * @returns the record with the send, which is charged once the caller saves it for a message that leaves; or the refusal
 *   RATE_LIMITED (PHONE_SEND_BUDGET, APP_RATE)
 */
export function chargeSend(
  needs: Pick<OtpNeeds, 'plans' | 'sendBudget'>,
  rows: Rows,
  application: CallingApplication,
  { record, trust, isLimited }: { record: PhoneRecord; trust: TrustLevel; isLimited: boolean },
  now: number,
): (Charged & { record: PhoneRecord; isOverBudget: boolean }) | Rejected {
  const mode = isLimited ? needs.sendBudget() : 'off'
  const { sends } = record.usages[trust]
  const isOverBudget = mode !== 'off' && checkSendBudget(mode, sends, now)
  if (isRejected(isOverBudget)) return isOverBudget
  const charged = chargeRate(needs, rows, application, 'send', now)
  if (isRejected(charged)) return charged
  const counted = mode === 'off' ? record : withUsage(record, trust, { sends: afterSend(sends, now) })
  return { ...charged, record: { ...counted, lastSentAt: now }, isOverBudget }
}
