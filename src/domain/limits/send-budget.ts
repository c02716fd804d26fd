import { ServiceError, tryAgainIn } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/**
 * Treatment of sends over the phone's budget: `off` counts nothing, `monitor` logs them, `enforce` refuses
 * them.
 */
export type SendBudgetMode = 'off' | 'monitor' | 'enforce'

const windows = [
  { limit: 5, windowMs: 10 * minuteMs },
  { limit: 20, windowMs: dayMs },
] as const
/** As many times as the largest limit: older ones decide nothing. */
const sendsKept = 20

/**
 * Checks that one more code may be sent to a phone at one trust level: 5 sends in 10 minutes and 20 a day, in every window of
 * that length (sliding-window log).
 *
 * @param sends times of the newest sends, oldest first
 * @returns whether the budget is exceeded, which only mode `monitor` lets pass; the refusal RATE_LIMITED
 *   (PHONE_SEND_BUDGET) when it is exceeded and enforced
 */
export function checkSendBudget(
  mode: Exclude<SendBudgetMode, 'off'>,
  sends: readonly number[],
  now: number,
): boolean | Rejected {
  const waitMs = Math.max(...windows.map((window) => waitMsFor(sends, window, now)))
  if (mode === 'enforce' && waitMs > 0) {
    const retryAfterSeconds = Math.ceil(waitMs / 1000)
    const message = `Too many codes were sent to this phone number. ${tryAgainIn(retryAfterSeconds)}`
    return reject(
      new ServiceError('RATE_LIMITED', message, { reason: 'PHONE_SEND_BUDGET', retryAfterSeconds }),
    )
  }
  return waitMs > 0
}

/** Returns the times of the newest sends, with one more. */
export const afterSend = (sends: readonly number[], now: number): number[] =>
  [...sends.filter((at) => at > now - dayMs && !isAhead(at, now)), now].slice(-sendsKept)

/** Milliseconds until the send that fills the window has left it; 0 or less if one more fits now. */
function waitMsFor(
  sends: readonly number[],
  { limit, windowMs }: (typeof windows)[number],
  now: number,
): number {
  const filling = sends.filter((at) => !isAhead(at, now)).at(-limit)
  return filling === undefined ? 0 : filling + windowMs - now
}

/** Detects a send from a clock that ran far ahead: it must not block the phone until that time. */
const isAhead = (at: number, now: number) => at > now + dayMs
