import { ServiceError } from '../model/errors.ts'
import { dayMs, hourMs } from '../../shared/durations.ts'
import type { CheckBudget } from '../store/phone-budgets.ts'

/**
 * Budgets without a failure for this long are deleted: full, unlocked, and the consecutive failures start
 * over.
 */
export const checkBudgetLifetimeMs = 30 * dayMs

/** NIST SP 800-63B §5.2.2: no more than 100 consecutive failed attempts on one account. */
const consecutiveFailuresMax = 100
const lockMs = dayMs

const fullBudget: CheckBudget = { refilledAt: 0, consecutiveFailures: 0, lockedUntil: null }

/**
 * Checks that the phone's codes may be attempted. Without this budget the limit of `attemptsMax` per
 * request would mean little: an attacker would start new requests until a guess hits.
 *
 * @param failuresMax capacity of the budget, which refills by one per hour; 0 turns it off
 * @throws RATE_LIMITED (PHONE_CHECK_BUDGET) when the budget is spent or the phone is locked
 */
export function requireCheckBudget(budget: CheckBudget | undefined, failuresMax: number, now: number): void {
  if (failuresMax === 0 || !budget) return
  const lockedMs = (budget.lockedUntil ?? 0) - now
  const spentMs = budget.refilledAt + hourMs - (now + failuresMax * hourMs)
  const waitMs = Math.max(lockedMs, spentMs)
  if (waitMs <= 0) return
  throw new ServiceError(
    'RATE_LIMITED',
    'Too many wrong codes were entered for this phone number. Wait, then retry.',
    {
      reason: 'PHONE_CHECK_BUDGET',
      retryAfterSeconds: Math.ceil(waitMs / 1000),
      metadata: { failuresMax },
    },
  )
}

/** Returns the budget after one more failure. Every 100th consecutive one locks the phone for 24 hours. */
export function afterFailure(budget: CheckBudget = fullBudget, now: number): CheckBudget {
  const consecutiveFailures = budget.consecutiveFailures + 1
  return {
    refilledAt: Math.max(budget.refilledAt, now) + hourMs,
    consecutiveFailures,
    lockedUntil: consecutiveFailures % consecutiveFailuresMax === 0 ? now + lockMs : budget.lockedUntil,
  }
}

/** Returns the budget after a success, which ends the consecutive failures and does not refill the budget. */
export const afterSuccess = (budget: CheckBudget): CheckBudget => ({ ...budget, consecutiveFailures: 0 })
