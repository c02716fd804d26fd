import { eventChange, breakdownChange, countChange } from '../log/changes.ts'
import type { CallingApplication } from '../model/application.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { MessageKey } from '../model/message.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { closedRequestError, isExpired, type OtpTerminalState, type OtpRequest } from '../model/request.ts'
import type { Change, Decision, NamedRows, Rows, EventSubscriber } from '../store/operation.ts'
import type { Stores } from '../store/store.ts'
import { utcDay } from '../../shared/durations.ts'

/** A request and the endpoints that hear of its end. */
export type ClosableRequest = { request: OtpRequest; subscribers: readonly EventSubscriber[] }

/** Reads a request if it is the application's own. */
export function readOwnRequest(
  rows: Pick<Rows, 'request'>,
  application: Pick<CallingApplication, 'id' | 'traceparent'>,
  id: string,
): OtpRequest | undefined {
  const request = isId('otp', id) ? rows.request(id) : undefined
  return request?.appId === application.id ? withTrace(request, application) : undefined
}

/** Adds the trace context of the call that is at work on a request. */
export const withTrace = (
  request: OtpRequest,
  { traceparent }: Pick<CallingApplication, 'traceparent'>,
): OtpRequest => (request.traceparent === traceparent ? request : { ...request, traceparent })

/** Reads a request with the endpoints that hear of its end. */
export function readClosable(
  rows: Pick<Rows, 'request' | 'subscribers'>,
  id: string,
): ClosableRequest | undefined {
  const request = rows.request(id)
  return request && { request, subscribers: rows.subscribers(request.appId) }
}

/** Names the endpoints of `readClosable`, once the request is there. */
export function nameClosableRows(rows: Pick<Rows, 'request'>, id: string): NamedRows | undefined {
  const request = rows.request(id)
  return request && { subscribers: request.appId }
}

/** Names the rows of a message and of what closes its request. */
export const messageRows = ({ requestId }: MessageKey) => ({
  first: () => ({ request: requestId, messages: [requestId] }),
  next: (rows: Pick<Rows, 'request'>) => nameClosableRows(rows, requestId),
})

/**
 * Closes a pending request: its state, its counters and its event.
 *
 * @returns the request in its final state
 */
export function closeRequest(
  newId: NewId,
  { request, subscribers }: ClosableRequest,
  terminalState: OtpTerminalState,
  now: number,
): Decision<OtpRequest> {
  const closed: OtpRequest = { ...request, failureReason: null, ...terminalState, updatedAt: now }
  const { status } = terminalState
  const changes: Change[] = [{ kind: 'request', request: closed, isNew: false }]
  if (status !== 'canceled')
    changes.push(countChange(closed, { failed: 1 }, utcDay(now)), breakdownChange(closed, { failed: 1 }, now))
  changes.push(
    eventChange(newId, `otp.${status}`, closed, subscribers, now, { detail: closed.failureReason }),
  )
  return { result: closed, changes }
}

/**
 * Refuses a call on a request that is closed, and closes one that has expired.
 *
 * @returns undefined while the request is pending
 */
export function refuseIfClosed(
  newId: NewId,
  closable: ClosableRequest,
  now: number,
): Decision<Rejected> | undefined {
  const { request } = closable
  if (request.status !== 'pending') return { result: reject(closedRequestError(request)), changes: [] }
  if (!isExpired(request, now)) return undefined
  const { result, changes } = closeRequest(newId, closable, { status: 'expired' }, now)
  return { result: reject(closedRequestError(result)), changes }
}

/** Names of the stores that canceling requests in an ordinary transaction uses. */
export type CancelTables = 'changes' | 'otpRequests' | 'webhookEndpoints'

/** Cancels the requests that are pending, in an ordinary transaction. @returns how many */
export async function cancelRequests(
  tx: Pick<Stores, CancelTables>,
  newId: NewId,
  ids: readonly string[],
  now: number,
): Promise<number> {
  let canceled = 0
  const changes: Change[] = []
  // In the lock order, so that no transactions wait for each other in a ring: requests by their ids, and only after all of
  // them what the changes of all need, such as endpoints and counters.
  for (const id of ids.toSorted()) {
    const request = await tx.otpRequests.lock(id)
    if (request?.status !== 'pending') continue
    const subscribers = await tx.webhookEndpoints.subscribers(request.appId)
    changes.push(...closeRequest(newId, { request, subscribers }, { status: 'canceled' }, now).changes)
    canceled++
  }
  await tx.changes.apply(changes)
  return canceled
}
