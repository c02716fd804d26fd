import { ServiceError } from '../model/errors.ts'
import { reject, type Rejected } from '../model/rejected.ts'
import { eventChange, breakdownChange, countChange } from '../log/changes.ts'
import type { GuardVerdict } from './judge.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Change, Decision, EventSubscriber } from '../store/operation.ts'
import { utcDay } from '../../shared/durations.ts'

/**
 * Records a blocked send: the request, failed from the start, its event and its counters.
 *
 * @param request as it would have been sent
 * @returns DESTINATION_BLOCKED. The violated rules stay in the log: an attacker must not learn the limits.
 */
export function blockSend(
  newId: NewId,
  request: OtpRequest,
  { violatedRules }: GuardVerdict,
  subscribers: readonly EventSubscriber[],
  now: number,
): Decision<Rejected> {
  const blockedRequest = {
    ...request,
    status: 'failed',
    failureReason: 'blocked',
    provider: null,
    deliveryStatus: null,
  } as const
  return {
    result: reject(destinationBlocked({ requestId: request.id })),
    changes: [
      { kind: 'request', request: blockedRequest, isNew: true },
      countChange(request, { requests: 1, failed: 1 }, utcDay(now)),
      breakdownChange(blockedRequest, { requests: 1, failed: 1 }, now),
      eventChange(newId, 'otp.blocked', blockedRequest, subscribers, now, {
        detail: violatedRules.join(' '),
      }),
    ],
  }
}

/**
 * Records a blocked resend, or a message that must not fail over. The request stays pending, as the code of its earlier
 * message can still be verified.
 */
export const blockedAgain = (
  newId: NewId,
  request: OtpRequest,
  kind: 'resend' | 'failover',
  { violatedRules }: GuardVerdict,
  subscribers: readonly EventSubscriber[],
  now: number,
): Change =>
  eventChange(newId, 'otp.blocked', request, subscribers, now, {
    detail: `${kind} ${violatedRules.join(' ')}`,
  })

/** DESTINATION_BLOCKED, which does not say why: an attacker must not learn the limits. */
export const destinationBlocked = (metadata: Record<string, string>) =>
  new ServiceError(
    'DESTINATION_BLOCKED',
    'Codes to this destination are blocked. Ask the operator if this is a mistake.',
    { metadata },
  )
