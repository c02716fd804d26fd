import { deliveriesTo, toIsoTime } from '../log/changes.ts'
import type { GuardAlert } from '../model/guard.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import { formatGuardAlert } from '../../shared/guard-alert.ts'
import type { Change, EventSubscriber } from '../store/operation.ts'

/**
 * Records an alert: a log entry of the application whose message raised it, and a webhook delivery for each endpoint
 * that subscribes to it.
 *
 * @param subscribers of all applications of the developer
 */
export function alertChange(
  newId: NewId,
  { developerId, appId }: Pick<OtpRequest, 'developerId' | 'appId'>,
  alert: GuardAlert,
  subscribers: readonly EventSubscriber[],
  at: number,
): Change {
  const type = 'guard.alert'
  const detail = formatGuardAlert(alert)
  return {
    kind: 'event',
    event: {
      entry: { type, developerId, appId, requestId: null, phone: null, status: null, detail, at },
      deliveries: deliveriesTo(newId, type, subscribers),
      toPayload: (id) => JSON.stringify({ id, type, timestamp: toIsoTime(at), data: alert }),
    },
  }
}
