import type { CallingApplication } from '../model/application.ts'
import type { Clock } from '../model/clock.ts'
import type { Developer } from '../model/developer.ts'
import { resolvePlan, resolvePlanName, type Plans } from '../model/plans.ts'
import type { RateLimit, RateState } from '../model/rate-limit.ts'
import type { OtpSession } from '../model/session.ts'
import { minuteMs } from '../../shared/durations.ts'
import { createMemoryRateLimiter } from './memory-rate-limit.ts'

/** Sessions of the ready page that an application may create for each code that its plan lets it send. */
const sessionsPerSend = 10
/** Forms that one link of the ready page may post. */
const pagePostsPerMinute = 30
/** Redeliveries and recoveries together. */
const redeliveriesPerMinute = 60

export type CallLimits = ReturnType<typeof createCallLimits>

/**
 * Creates the limits that keep one caller from taking this node away from all others. They count in memory; limits
 * that protect codes, phones and passwords are in the database.
 */
export function createCallLimits({ clock, plans }: { clock: Clock; plans: Plans }) {
  const limiter = createMemoryRateLimiter(clock)
  const perMinute = (limit: Omit<RateLimit, 'windowMs'>, reason: string) =>
    limiter.charge({ ...limit, windowMs: minuteMs }, reason)
  const planLimit = (plan: string, rate: 'consolePerMinute' | 'lookupsPerMinute') => ({
    limit: resolvePlan(plans, plan)[rate],
    plan: resolvePlanName(plans, plan),
  })

  return {
    /**
     * Charges a call of a console route.
     *
     * @param session if only a login may make the call. Such calls count apart and for each session, so that a stolen API
     *   token or session cannot keep its owner from ending it.
     * @throws RATE_LIMITED (CONSOLE_RATE)
     */
    chargeConsoleCall({ id, plan }: Developer, session?: string): RateState | undefined {
      const subject = session === undefined ? id : `${id} ${session}`
      return perMinute({ ...planLimit(plan, 'consolePerMinute'), policy: 'console', subject }, 'CONSOLE_RATE')
    },

    /** Charges a look-up of an application: of a user, or of the history of a request. @throws RATE_LIMITED (LOOKUP_RATE) */
    chargeLookup: ({ id, plan }: Pick<CallingApplication, 'id' | 'plan'>): RateState | undefined =>
      perMinute({ ...planLimit(plan, 'lookupsPerMinute'), policy: 'lookups', subject: id }, 'LOOKUP_RATE'),

    /** Charges the creation of a session, which is kept for a day. @throws RATE_LIMITED (SESSION_RATE) */
    chargeSession({ id, plan }: Pick<CallingApplication, 'id' | 'plan'>): RateState | undefined {
      const limit = resolvePlan(plans, plan).sendPerMinute * sessionsPerSend
      const own = { policy: 'sessions', subject: id, limit, plan: resolvePlanName(plans, plan) }
      return perMinute(own, 'SESSION_RATE')
    },

    /** Charges a form of the ready page, so that one link cannot use up the limits of all. @throws RATE_LIMITED (PAGE_RATE) */
    chargePagePost({ id }: Pick<OtpSession, 'id'>): void {
      perMinute({ policy: 'page-posts', subject: id, limit: pagePostsPerMinute }, 'PAGE_RATE')
    },

    /**
     * Charges a redelivery or a recovery: each makes this server send to an address that the developer chose.
     *
     * @throws RATE_LIMITED (WEBHOOK_REDELIVERIES)
     */
    chargeRedelivery({ id }: Pick<Developer, 'id'>): void {
      const limit = { policy: 'webhook-redeliver', subject: id, limit: redeliveriesPerMinute }
      perMinute(limit, 'WEBHOOK_REDELIVERIES')
    },
  }
}
