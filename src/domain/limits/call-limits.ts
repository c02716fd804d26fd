import type { CallingApplication } from '../model/application.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { resolvePlan, type Plans } from '../model/plans.ts'
import type { RateState } from '../model/rate-limit.ts'
import { minuteMs } from '../../shared/durations.ts'
import { createMemoryRateLimiter } from './memory-rate-limit.ts'

/** Redeliveries and recoveries together. */
const redeliveriesPerMinute = 60

export type CallLimits = ReturnType<typeof createCallLimits>

/**
 * Creates the limits that keep one caller from taking this node away from all others. They count in memory; limits
 * that protect codes, phones and passwords are in the database.
 */
export function createCallLimits({ clock, plans }: { clock: Clock; plans: Plans }) {
  const limiter = createMemoryRateLimiter(clock)
  const perMinute = (policy: string, subject: string, limit: number, reason: string) =>
    limiter.charge({ policy, subject, limit, windowMs: minuteMs }, reason)

  return {
    /** Charges a call of a console route. @throws RATE_LIMITED (CONSOLE_RATE) */
    chargeConsoleCall: ({ id, plan }: Developer): RateState | undefined =>
      perMinute('console', id, resolvePlan(plans, plan).consolePerMinute, 'CONSOLE_RATE'),

    /** Charges a look-up that authenticates by the API key alone. @throws RATE_LIMITED (LOOKUP_RATE) */
    chargeLookup: ({ id, plan }: Pick<CallingApplication, 'id' | 'plan'>): RateState | undefined =>
      perMinute('lookups', id, resolvePlan(plans, plan).lookupsPerMinute, 'LOOKUP_RATE'),

    /**
     * Charges a redelivery or a recovery: each makes this server send to an address that the developer chose.
     *
     * @throws RATE_LIMITED (WEBHOOK_REDELIVERIES)
     */
    chargeRedelivery({ id }: Pick<Developer, 'id'>): void {
      perMinute('webhook-redeliver', id, redeliveriesPerMinute, 'WEBHOOK_REDELIVERIES')
    },
  }
}
