import { ServiceError } from '../model/errors.ts'

/** Failed checks of one phone in one application, over all its requests. */
export type CheckBudget = {
  /** When the last of the failures so far is forgiven: one an hour. */
  refilledAt: number
  /** Failures since the last success. */
  consecutiveFailures: number
  lockedUntil: number | null
}

export type CheckBudgetStore = {
  find(appId: string, phoneHash: string): Promise<CheckBudget | undefined>
  put(appId: string, phoneHash: string, budget: CheckBudget): Promise<void>
  /** @returns the applications that had one */
  deleteByPhone(phoneHash: string): Promise<string[]>
  /** @returns of how many phones */
  deleteByApplication(appId: string): Promise<number>
  /** About `chunk` of those that were refilled first, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

const hourMs = 3_600_000

/** After so long without a failure the budget is full and no lock is left: the row of failures begins anew. */
export const checkBudgetLifetimeMs = 30 * 24 * hourMs

/** NIST SP 800-63B §5.2.2: no more than 100 consecutive failed attempts on one account. */
const consecutiveFailuresMax = 100
const lockMs = 24 * hourMs

const fullBudget: CheckBudget = { refilledAt: 0, consecutiveFailures: 0, lockedUntil: null }

/**
 * Whether the phone's codes may be tried at all. Without this budget the five attempts of a request mean little:
 * whoever guesses asks for new requests until one of them is hit.
 *
 * @param failuresMax how many failures the budget holds, one more each hour; 0 turns it off
 * @throws RATE_LIMITED (PHONE_CHECK_BUDGET)
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

/** The budget after one more failure. */
export function afterFailure(budget: CheckBudget = fullBudget, now: number): CheckBudget {
  const consecutiveFailures = budget.consecutiveFailures + 1
  return {
    refilledAt: Math.max(budget.refilledAt, now) + hourMs,
    consecutiveFailures,
    lockedUntil: consecutiveFailures % consecutiveFailuresMax === 0 ? now + lockMs : budget.lockedUntil,
  }
}

/** A success ends the row of failures and does not refill the budget. */
export const afterSuccess = (budget: CheckBudget): CheckBudget => ({ ...budget, consecutiveFailures: 0 })
