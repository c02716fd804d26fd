import { ServiceError } from './errors.ts'
import { measure, record, type RateLimit } from './rate-limit.ts'
import type { Stores } from './store.ts'

/** What happens to a send over the phone's budget: nothing is counted, it is noted in the log, or it is refused. */
export type SendBudgetMode = 'off' | 'monitor' | 'enforce'

const minuteMs = 60_000
const windows = [
  { limit: 5, windowMs: 10 * minuteMs },
  { limit: 20, windowMs: 24 * 60 * minuteMs },
]

/**
 * Counts a send to one phone of one application: at most 5 in 10 minutes and 20 a day are ordinary.
 *
 * @param subject application and phone, the phone hashed
 * @returns whether this send is over the budget
 * @throws RATE_LIMITED (PHONE_SEND_BUDGET) it is, and the budget is enforced
 */
export async function spendSendBudget(
  tx: Stores,
  mode: SendBudgetMode,
  subject: string,
  now: number,
): Promise<boolean> {
  if (mode === 'off') return false
  let waitMs = 0
  for (const { limit, windowMs } of windows) {
    const usage = await measure(tx, toLimit(subject, limit, windowMs), now)
    if (usage.used >= limit) waitMs = Math.max(waitMs, (usage.oldestAt ?? now) + windowMs - now)
  }
  if (mode === 'enforce' && waitMs > 0) {
    throw new ServiceError(
      'RATE_LIMITED',
      'Too many codes were sent to this phone number. Wait and try again.',
      {
        reason: 'PHONE_SEND_BUDGET',
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      },
    )
  }
  const day = toLimit(subject, 20, 24 * 60 * minuteMs)
  await record(tx, day, await measure(tx, day, now), now)
  return waitMs > 0
}

const toLimit = (subject: string, limit: number, windowMs: number): RateLimit => ({
  policy: 'phone-send',
  subject,
  limit,
  windowMs,
})
