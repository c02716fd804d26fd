import { utcDay } from '../log/analytics.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import type { NewId } from '../model/ids.ts'
import { closedRequestError, isExpired, type OtpTerminalState, type OtpRequest } from '../model/request.ts'
import type { Stores } from '../store/store.ts'

/** Names of the stores that closing a request and publishing it use. */
export type LifecycleTables = EventTables | 'analytics' | 'otpRequests'

/**
 * Closes a pending request and publishes it: state, counters, log entry and webhook deliveries in one
 * transaction.
 *
 * @returns undefined if it was already closed
 */
export async function closeAndPublish(
  tx: Pick<Stores, LifecycleTables>,
  newId: NewId,
  id: string,
  terminalState: OtpTerminalState,
  now: number,
): Promise<OtpRequest | undefined> {
  const [closedRequest] = await closeRequests(tx, [id], terminalState, now)
  if (closedRequest) await publishClosed(tx, newId, closedRequest, now)
  return closedRequest
}

/**
 * Closes requests: their states and counters. `publishClosed` must follow for each of them. The two are
 * separate because allocating a log sequence number takes a lock until commit; take it last or transactions
 * can deadlock.
 *
 * @returns the requests that were still pending
 */
export async function closeRequests(
  tx: Pick<Stores, 'analytics' | 'otpRequests'>,
  ids: string[],
  terminalState: OtpTerminalState,
  now: number,
): Promise<OtpRequest[]> {
  const closedRequests: OtpRequest[] = []
  for (const id of ids) {
    const request = await tx.otpRequests.close(id, terminalState, now)
    if (request) closedRequests.push(request)
  }
  if (terminalState.status === 'canceled') return closedRequests
  const counts = new Map<string, number>()
  for (const { developerId } of closedRequests) counts.set(developerId, (counts.get(developerId) ?? 0) + 1)
  for (const developerId of [...counts.keys()].toSorted()) {
    await tx.analytics.add(developerId, utcDay(now), { failed: counts.get(developerId) ?? 0 })
  }
  return closedRequests
}

/** Records the log entry and webhook deliveries of a closed request. @param request in its final state */
export async function publishClosed(
  tx: Pick<Stores, EventTables>,
  newId: NewId,
  request: OtpRequest,
  now: number,
): Promise<void> {
  if (request.status === 'pending') return
  await recordEvent(tx, newId, `otp.${request.status}`, request, now, request.failureReason)
}

/**
 * Rejects a call on a request that is closed. Closes the request first if it has expired but was not closed
 * yet: the result must be returned from the transaction, so that this is committed.
 *
 * @returns undefined while the request is pending
 */
export async function rejectIfClosed(
  tx: Pick<Stores, LifecycleTables>,
  newId: NewId,
  request: OtpRequest,
  now: number,
): Promise<Rejected | undefined> {
  if (request.status !== 'pending') return reject(closedRequestError(request))
  if (!isExpired(request, now)) return undefined
  const expired = await closeAndPublish(tx, newId, request.id, { status: 'expired' }, now)
  return reject(closedRequestError(expired ?? (await tx.otpRequests.find(request.id)) ?? request))
}
