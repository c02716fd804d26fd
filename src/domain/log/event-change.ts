import { eventKinds, wildcardKinds, type LogType } from '../../shared/event-kinds.ts'
import type { NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import { writeWebhookBody } from '../model/webhook-body.ts'
import type { Change, NewEvent, EventSubscriber } from '../store/operation.ts'

const webhookKinds: ReadonlySet<string> = new Set(eventKinds)
const kindsOfWildcard: ReadonlySet<string> = new Set(wildcardKinds)

export const toIsoTime = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

/**
 * Records an event of an OTP request: a log entry, and a webhook delivery for each subscribed endpoint. Belongs to the
 * changes of the request, so that both are atomic.
 *
 * @param request the request after the event
 * @param subscribers of its application
 */
export function eventChange(
  newId: NewId,
  type: LogType,
  request: OtpRequest,
  subscribers: readonly EventSubscriber[],
  at: number,
  options: {
    detail?: string | null | undefined
    inbox?: NewEvent['inbox']
    /** Session of the ready page, if the event is about one. */
    sessionId?: string
  } = {},
): Change {
  const entry = {
    type,
    developerId: request.developerId,
    appId: request.appId,
    requestId: request.id,
    phone: request.phone,
    status: request.status,
    detail: options.detail ?? null,
    at,
  }
  return {
    kind: 'event',
    event: {
      entry,
      deliveries: deliveriesTo(newId, type, subscribers),
      toPayload: (id) =>
        writeWebhookBody(eventBody(id, type, request, at, options.sessionId), request.traceparent),
      inbox: options.inbox,
    },
  }
}

/** Creates a delivery for each endpoint that subscribes to events of this type. */
export const deliveriesTo = (newId: NewId, type: LogType, subscribers: readonly EventSubscriber[]) =>
  webhookKinds.has(type) && subscribers.length > 0
    ? subscribers
        .filter(({ events }) => events.includes(type) || (kindsOfWildcard.has(type) && events.includes('*')))
        .map(({ id }) => ({ id: newId('dlv'), endpointId: id }))
    : []

/** Builds the event of a webhook as Standard Webhooks defines it. It never contains the code. */
export function eventBody(id: string, type: string, request: OtpRequest, at: number, sessionId?: string) {
  return {
    id,
    type,
    timestamp: toIsoTime(at),
    data: {
      ...(sessionId !== undefined && { sessionId }),
      requestId: request.id,
      appId: request.appId,
      projectId: request.projectId,
      environment: request.environment,
      phone: request.phone,
      country: request.country,
      status: request.status,
      failureReason: request.failureReason,
      channel: request.channel,
      attempts: request.attempts,
      createdAt: toIsoTime(request.createdAt),
      expiresAt: toIsoTime(request.expiresAt),
      verifiedAt: toIsoTime(request.verifiedAt),
      metadata: request.metadata,
    },
  }
}
