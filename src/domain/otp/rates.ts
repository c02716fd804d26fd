import type { CallingApplication } from '../apps/authentication.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { RateLimit } from '../limits/rate-limit.ts'

/** What an application may do only so often: a resend counts as a send. */
export type RatedOperation = 'send' | 'verify'

/** The limit that holds for an application by the plan of its developer. */
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
    windowMs: 60_000,
  }
}
