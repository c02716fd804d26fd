import { ServiceError } from '../model/errors.ts'
import { measureUsage, recordAdmission, waitMsFor, type RateLimit, type Usage } from './rate-limit.ts'
import type { Stores } from '../store/store.ts'

/** What happens to a send over the phone's budget: nothing is counted, it is noted in the log, or it is refused. */
export type SendBudgetMode = 'off' | 'monitor' | 'enforce'

const minuteMs = 60_000
const shortWindow = { limit: 5, windowMs: 10 * minuteMs }
const dayWindow = { limit: 20, windowMs: 24 * 60 * minuteMs }

/**
 * Counts a send to one phone of one application: at most 5 in 10 minutes and 20 a day are ordinary.
 *
 * @param subject application and phone, the phone hashed
 * @param beforeCharge asked where the budget lets the send pass and before it is counted, so that a refusal has nothing to undo
 * @returns whether this send is over the budget
 * @throws RATE_LIMITED (PHONE_SEND_BUDGET) it is, and the budget is enforced
 */
export async function chargePhoneBudget(
  tx: Stores,
  mode: SendBudgetMode,
  subject: string,
  now: number,
  beforeCharge: () => Promise<void> = () => Promise.resolve(),
): Promise<boolean> {
  if (mode === 'off') {
    await beforeCharge()
    return false
  }
  const dayLimit = toLimit(subject, dayWindow)
  const dayUsage = await measureUsage(tx, dayLimit, now)
  let waitMs = await waitMsIfExhausted(tx, dayLimit, dayUsage, now)
  if (dayUsage.used >= shortWindow.limit) {
    const shortLimit = toLimit(subject, shortWindow)
    const shortUsage = await measureUsage(tx, shortLimit, now, dayUsage)
    waitMs = Math.max(waitMs, await waitMsIfExhausted(tx, shortLimit, shortUsage, now))
  }
  if (mode === 'enforce' && waitMs > 0) {
    throw new ServiceError(
      'RATE_LIMITED',
      'Too many codes were sent to this phone number. Wait, then retry.',
      {
        reason: 'PHONE_SEND_BUDGET',
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      },
    )
  }
  await beforeCharge()
  await recordAdmission(tx, dayLimit, dayUsage, now)
  return waitMs > 0
}

const toLimit = (subject: string, window: { limit: number; windowMs: number }): RateLimit => ({
  policy: 'phone-send',
  subject,
  ...window,
})

/** How long until one more fits, in milliseconds. */
const waitMsIfExhausted = async (tx: Stores, limit: RateLimit, usage: Usage, now: number): Promise<number> =>
  usage.used >= limit.limit ? waitMsFor(tx, limit, usage, now) : 0
