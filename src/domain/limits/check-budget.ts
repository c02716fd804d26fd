import { ServiceError, tryAgainIn } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { dayMs, hourMs } from '../../shared/durations.ts'
import type { CheckBudget } from '../model/phone-record.ts'

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
 * Checks that codes of the phone may be attempted at one trust level. Without this budget the limit of `attemptsMax` per
 * request would mean little: an attacker would start new requests until a guess hits.
 *
 * @param failuresMax capacity of the budget, which refills by one per hour; 0 turns it off
 * @returns the refusal RATE_LIMITED (PHONE_CHECK_BUDGET) when the budget is spent or the trust level is locked
 */
export function refuseSpentBudget(
  budget: CheckBudget | null,
  failuresMax: number,
  now: number,
): Rejected | undefined {
  if (failuresMax === 0 || !budget) return undefined
  const lockedMs = (budget.lockedUntil ?? 0) - now
  const spentMs = budget.refilledAt + hourMs - (now + failuresMax * hourMs)
  const waitMs = Math.max(lockedMs, spentMs)
  if (waitMs <= 0) return undefined
  const retryAfterSeconds = Math.ceil(waitMs / 1000)
  return reject(
    new ServiceError(
      'RATE_LIMITED',
      `Too many wrong codes were entered for this phone number. ${tryAgainIn(retryAfterSeconds)}`,
      { reason: 'PHONE_CHECK_BUDGET', retryAfterSeconds, metadata: { failuresMax } },
    ),
  )
}

/** Returns the budget after one more failure. Every 100th consecutive one locks the trust level for 24 hours. */
export function afterFailure(checks: CheckBudget | null, now: number): CheckBudget {
  const budget = checks ?? fullBudget
  const consecutiveFailures = budget.consecutiveFailures + 1
  return {
    refilledAt: Math.max(budget.refilledAt, now) + hourMs,
    consecutiveFailures,
    lockedUntil: consecutiveFailures % consecutiveFailuresMax === 0 ? now + lockMs : budget.lockedUntil,
  }
}

/** Returns the budget after a success, which ends the consecutive failures and does not refill the budget. */
export const afterSuccess = (checks: CheckBudget | null): CheckBudget | null =>
  checks && { ...checks, consecutiveFailures: 0 }

/** Combines two budgets of one phone: the stricter of each limit holds. */
export const stricter = (one: CheckBudget | null, other: CheckBudget): CheckBudget => ({
  refilledAt: Math.max(one?.refilledAt ?? 0, other.refilledAt),
  consecutiveFailures: Math.max(one?.consecutiveFailures ?? 0, other.consecutiveFailures),
  lockedUntil: Math.max(one?.lockedUntil ?? 0, other.lockedUntil ?? 0) || null,
})
