import { utcDay } from '../log/analytics.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { recordEvent } from '../log/events.ts'
import type { GuardVerdict } from './guard.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Stores } from '../store/store.ts'

/**
 * Writes down that a send was blocked: the request, ended before it began, its event and its counters.
 *
 * @param request as it would have been sent
 * @returns DESTINATION_BLOCKED. The cause stays in the log: whoever is behind the sends must not learn the limits.
 */
export async function recordBlockedSend(
  tx: Stores,
  newId: NewId,
  request: OtpRequest,
  { violatedRules }: GuardVerdict,
  now: number,
): Promise<Rejected> {
  const blockedRequest = {
    ...request,
    status: 'failed',
    failureReason: 'blocked',
    provider: null,
    deliveryStatus: null,
  } as const
  await tx.otpRequests.insert(blockedRequest)
  await tx.analytics.add(request.developerId, utcDay(now), { requests: 1, failed: 1 })
  await recordEvent(tx, newId, 'otp.blocked', blockedRequest, now, violatedRules.join(' '))
  return reject(destinationBlocked(request.id))
}

/** The request stays as it was: the message that went out before may still be answered. */
export async function recordBlockedResend(
  tx: Stores,
  newId: NewId,
  request: OtpRequest,
  { violatedRules }: GuardVerdict,
  now: number,
): Promise<Rejected> {
  await recordEvent(tx, newId, 'otp.blocked', request, now, `resend ${violatedRules.join(' ')}`)
  return reject(destinationBlocked(request.id))
}

/** Notes in the log what the guard would have blocked. */
export async function recordFlagged(
  tx: Stores,
  newId: NewId,
  request: OtpRequest,
  { violatedRules }: GuardVerdict,
  now: number,
): Promise<void> {
  if (violatedRules.length > 0)
    await recordEvent(tx, newId, 'guard.flagged', request, now, violatedRules.join(' '))
}

const destinationBlocked = (requestId: string) =>
  new ServiceError(
    'DESTINATION_BLOCKED',
    'Codes to this destination are blocked. Ask the operator if this is a mistake.',
    { metadata: { requestId } },
  )
