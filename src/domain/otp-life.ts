import { dayOf } from './analytics.ts'
import type { Delivery } from './delivery.ts'
import type { ServiceError } from './errors.ts'
import { recordEvent } from './events.ts'
import type { NewId } from './ids.ts'
import type { Keys } from './keys.ts'
import { endedError, isDue, type OtpEnd, type OtpRequest } from './otp-requests.ts'
import type { Plans } from './plans.ts'
import type { Clock, Random } from './ports.ts'
import type { SendBudgetMode } from './send-budget.ts'
import type { Store, Stores } from './store.ts'

/** What the operations on OTP requests share. */
export type OtpNeeds = {
  store: Store
  clock: Clock
  newId: NewId
  keys: Keys
  plans: Plans
  delivery: Delivery
  random: Random
  /** Failed checks that a phone's budget holds; 0 turns it off. */
  checkFailuresMax: number
  sendBudget: SendBudgetMode
}

/**
 * Ends a pending request and tells everybody: state, event, deliveries and counters in the one transaction.
 *
 * @returns undefined when another caller ended it before
 */
export async function endRequest(
  tx: Stores,
  newId: NewId,
  id: string,
  end: Exclude<OtpEnd, { status: 'verified' }>,
  now: number,
): Promise<OtpRequest | undefined> {
  const ended = await tx.otpRequests.end(id, end, now)
  if (!ended) return undefined
  if (end.status !== 'canceled') await tx.analytics.add(ended.developerId, dayOf(now), { failed: 1 })
  await recordEvent(tx, newId, `otp.${end.status}`, ended, now, ended.failureReason)
  return ended
}

/**
 * Why nothing more can be done with a request, or undefined while it is pending. Writes the expiry down where nobody
 * has yet.
 */
export async function refusalOf(
  tx: Stores,
  newId: NewId,
  request: OtpRequest,
  now: number,
): Promise<ServiceError | undefined> {
  if (request.status !== 'pending') return endedError(request)
  if (!isDue(request, now)) return undefined
  const expired = await endRequest(tx, newId, request.id, { status: 'expired' }, now)
  return endedError(expired ?? (await tx.otpRequests.find(request.id)) ?? request)
}
