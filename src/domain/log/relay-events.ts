import type { RelayKind } from '../../shared/event-kinds.ts'
import { deliveriesTo, toIsoTime } from './changes.ts'
import { writeWebhookBody } from '../model/webhook-body.ts'
import type { MessageCost } from '../model/price.ts'
import type { NewId } from '../model/ids.ts'
import type { RelayedMessage, RelayOutcome } from '../model/relayed-message.ts'
import type { Change, EventSubscriber } from '../store/operation.ts'

/** A message as its events show it. */
export type RelayedFacts = Omit<
  RelayedMessage,
  'provider' | 'messageId' | 'status' | 'outcome' | keyof MessageCost
> & {
  /** The caller's W3C trace context. */
  traceparent?: string | undefined
}

const statusByKind = {
  'message.sent': 'sent',
  'message.delivered': 'delivered',
  'message.undelivered': 'undelivered',
} as const

type LogOnlyKind = 'guard.flagged' | `message.${RelayOutcome}`

const isLogOnly = (type: RelayKind | LogOnlyKind): type is LogOnlyKind =>
  type === 'guard.flagged' || type === 'message.verified' || type === 'message.failed'

/**
 * Records an event of a relayed message: a log entry, whose `requestId` is the id of the message, and a webhook delivery for
 * each endpoint that names its kind. Outcomes and `guard.flagged` are only in the log.
 */
export function relayEventChange(
  newId: NewId,
  type: RelayKind | LogOnlyKind,
  message: RelayedFacts,
  subscribers: readonly EventSubscriber[],
  at: number,
  detail: string | null = null,
): Change {
  const { id, developerId, projectId, appId, environment, phone, country, channel, createdAt } = message
  const status = isLogOnly(type) ? null : statusByKind[type]
  const toBody = (eventId: string) => ({
    id: eventId,
    type,
    timestamp: toIsoTime(at),
    data: {
      messageId: id,
      appId,
      projectId,
      environment,
      phone,
      country,
      status,
      channel,
      createdAt: toIsoTime(createdAt),
    },
  })
  return {
    kind: 'event',
    event: {
      entry: { type, developerId, appId, requestId: id, phone, status, detail, at },
      deliveries: deliveriesTo(newId, type, subscribers),
      toPayload: (eventId) => writeWebhookBody(toBody(eventId), message.traceparent),
    },
  }
}
