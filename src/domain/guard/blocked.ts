import { utcDay } from '../log/analytics.ts'
import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { recordEvent, type EventTables } from '../log/events.ts'
import type { GuardVerdict } from './judge.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Stores } from '../store/store.ts'

/**
 * Records a blocked send: the request, failed from the start, its event and its counters.
 *
 * @param request as it would have been sent
 * @returns DESTINATION_BLOCKED. The violated rules stay in the log: an attacker must not learn the limits.
 */
export async function recordBlockedSend(
  tx: Pick<Stores, EventTables | 'analytics' | 'otpRequests'>,
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

/**
 * Records a blocked resend. The request stays pending, as the code of its earlier message can still be
 * verified.
 */
export async function recordBlockedResend(
  tx: Pick<Stores, EventTables>,
  newId: NewId,
  request: OtpRequest,
  { violatedRules }: GuardVerdict,
  now: number,
): Promise<Rejected> {
  await recordEvent(tx, newId, 'otp.blocked', request, now, `resend ${violatedRules.join(' ')}`)
  return reject(destinationBlocked(request.id))
}

/** Records in the log that a message was sent although it violates rules (mode `monitor`). */
export async function recordFlagged(
  tx: Pick<Stores, EventTables>,
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
