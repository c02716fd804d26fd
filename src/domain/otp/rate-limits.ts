import type { CallingApplication } from '../model/application.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import { minuteMs } from '../../shared/durations.ts'

/** Operations with a rate limit. A resend counts as a send. */
export type RatedOperation = 'send' | 'verify'

/** Rate limit of one application for an operation, as its developer's plan sets it. */
export function otpRateLimit(
  plans: Plans,
  application: CallingApplication,
  operation: RatedOperation,
): RateLimit {
  const plan = resolvePlan(plans, application.plan)
  return {
    policy: `otp-${operation}`,
    subject: application.id,
    limit: operation === 'send' ? plan.sendPerMinute : plan.verifyPerMinute,
    windowMs: minuteMs,
  }
}
