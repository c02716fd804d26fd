import { dayOf } from '../log/analytics.ts'
import type { DeliveryAttempts } from './delivery-attempts.ts'
import type { Delivery } from '../model/delivery.ts'
import type { ServiceError } from '../model/errors.ts'
import { recordEvent } from '../log/events.ts'
import type { Guard } from '../guard/guard.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { endedError, isDue, type OtpEnd, type OtpRequest } from '../model/request.ts'
import type { Plans } from '../model/plans.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { SendBudgetMode } from '../limits/send-budget.ts'
import type { Store, Stores } from '../store/store.ts'

/** What the operations on OTP requests share. */
export type OtpNeeds = {
  store: Store
  clock: Clock
  newId: NewId
  keys: Keys
  plans: Plans
  delivery: Delivery
  attempts: DeliveryAttempts
  random: Random
  /** Failed checks that a phone's budget holds; 0 turns it off. */
  checkFailuresMax: number
  sendBudget: SendBudgetMode
  guard: Guard
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
  end: OtpEnd,
  now: number,
): Promise<OtpRequest | undefined> {
  const [ended] = await markEnded(tx, [id], end, now)
  if (ended) await recordEnd(tx, newId, ended, now)
  return ended
}

/**
 * The first half of ending requests: their states and what is counted of them. `recordEnd` must follow for each. The
 * numbers of log entries are the last thing that a transaction takes: whoever has one holds up all others, so that
 * waiting for anything after it could wait for ever.
 *
 * @returns those that nobody had ended before
 */
export async function markEnded(tx: Stores, ids: string[], end: OtpEnd, now: number): Promise<OtpRequest[]> {
  const ended: OtpRequest[] = []
  for (const id of ids) {
    const request = await tx.otpRequests.end(id, end, now)
    if (request) ended.push(request)
  }
  if (end.status === 'canceled') return ended
  const counts = new Map<string, number>()
  for (const { developerId } of ended) counts.set(developerId, (counts.get(developerId) ?? 0) + 1)
  for (const developerId of [...counts.keys()].toSorted()) {
    await tx.analytics.add(developerId, dayOf(now), { failed: counts.get(developerId) ?? 0 })
  }
  return ended
}

/** @param ended as it is after its end */
export async function recordEnd(tx: Stores, newId: NewId, ended: OtpRequest, now: number): Promise<void> {
  if (ended.status === 'pending') return
  await recordEvent(tx, newId, `otp.${ended.status}`, ended, now, ended.failureReason)
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
