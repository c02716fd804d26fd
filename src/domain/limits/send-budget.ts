import { ServiceError } from '../model/errors.ts'
import { measureUsage, recordAdmission, waitMsFor, type Usage } from './rate-limit.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import type { Stores } from '../store/store.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/**
 * Treatment of sends over the phone's budget: `off` counts nothing, `monitor` logs them, `enforce` refuses
 * them.
 */
export type SendBudgetMode = 'off' | 'monitor' | 'enforce'

const shortWindow = { limit: 5, windowMs: 10 * minuteMs }
const dayWindow = { limit: 20, windowMs: dayMs }

/** A measured send budget that the send has not been charged to yet. */
export type SendBudget = { limit: RateLimit; usage: Usage; isExceeded: boolean }

/**
 * Measures the send budget of a phone in one application: 5 sends in 10 minutes and 20 a day. Charges
 * nothing; `chargeSendBudget` does, once every other limit has admitted the send.
 *
 * @param subject application id and hashed phone
 * @returns undefined in mode `off`
 * @throws RATE_LIMITED (PHONE_SEND_BUDGET) when the budget is exceeded and enforced
 */
export async function requireSendBudget(
  tx: Pick<Stores, 'rateLimits'>,
  mode: SendBudgetMode,
  subject: string,
  now: number,
): Promise<SendBudget | undefined> {
  if (mode === 'off') return undefined
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
  return { limit: dayLimit, usage: dayUsage, isExceeded: waitMs > 0 }
}

/** Charges one send to a budget that was measured in the same transaction. */
export const chargeSendBudget = (
  tx: Pick<Stores, 'rateLimits'>,
  { limit, usage }: SendBudget,
  now: number,
): Promise<void> => recordAdmission(tx, limit, usage, now)

const toLimit = (subject: string, window: { limit: number; windowMs: number }): RateLimit => ({
  policy: 'phone-send',
  subject,
  ...window,
})

/** Milliseconds until one more send fits; 0 if it fits now. */
const waitMsIfExhausted = async (
  tx: Pick<Stores, 'rateLimits'>,
  limit: RateLimit,
  usage: Usage,
  now: number,
): Promise<number> => (usage.used >= limit.limit ? waitMsFor(tx, limit, usage, now) : 0)
