import { eventKinds, wildcardKinds, type LogType } from '../../shared/event-kinds.ts'
import type { Environment } from '../../shared/otp-values.ts'
import { utcDay } from '../../shared/durations.ts'
import { inboxProvider, type DeliveryTry } from '../model/delivery.ts'
import type { NewId } from '../model/ids.ts'
import type { MessageCost } from '../model/price.ts'
import type { OtpRequest } from '../model/request.ts'
import { writeWebhookBody } from '../model/webhook-body.ts'
import type { BreakdownChanges, CostCount, CountChanges, CountName } from '../store/analytics.ts'
import type { Change, NewEvent, EventSubscriber } from '../store/operation.ts'

// Changes that report what happens to requests: log entries with their webhooks, and counts.

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

type Counts = { [N in CountName]?: number }
/** A message or request, as the breakdown counts it. */
type Counted = Pick<OtpRequest, 'developerId' | 'appId' | 'environment' | 'country' | 'channel' | 'provider'>
type CostCounts = { [N in CostCount]?: number }

/** Adds to the developer's counts of a day. */
export const countChange = (
  { developerId, environment }: Pick<OtpRequest, 'developerId' | 'environment'>,
  counts: Counts,
  day: number,
): Change => ({ kind: 'counts', developerId, day, counts: inEnvironment(environment, counts) })

/** Counts in the test environment, too, if they are its own. */
export function inEnvironment(environment: Environment, counts: Counts): CountChanges {
  if (environment === 'live') return counts
  const changes: CountChanges = { ...counts }
  for (const [name, count] of Object.entries(counts)) changes[testNames[name as CountName]] = count
  return changes
}

const testNames = {
  requests: 'testRequests',
  queued: 'testQueued',
  verified: 'testVerified',
  failed: 'testFailed',
  active: 'testActive',
} as const

const noRoute = { channel: null, provider: null }

/**
 * Adds to the counts of today by application, country, channel and provider. Messages of test applications count without
 * channel and provider, as no provider gets them.
 */
export function breakdownChange(message: Counted, counts: BreakdownChanges, now: number): Change {
  const { developerId, appId, environment, country } = message
  const { channel, provider } = environment === 'test' ? noRoute : message
  return {
    kind: 'breakdown',
    key: { developerId, appId, day: utcDay(now), country, channel, provider },
    counts,
  }
}

/** Counts what a message costs. */
export function costCounts({ estimatedPrice, chargedPrice }: MessageCost): CostCounts {
  if (chargedPrice !== null) return { cost: chargedPrice }
  return estimatedPrice === null ? { unpriced: 1 } : { cost: estimatedPrice, estimatedCost: estimatedPrice }
}

/** Counts the tries that the fraud filter of a provider stopped. */
export const blockedChanges = (
  message: Omit<Counted, 'channel' | 'provider'>,
  tries: readonly DeliveryTry[],
  now: number,
): Change[] =>
  tries
    .filter(({ error }) => error === 'blocked_by_carrier')
    .map(({ channel, provider }) => breakdownChange({ ...message, channel, provider }, { blocked: 1 }, now))

/**
 * Replaces what was counted for a message, now that its provider has named the price.
 *
 * @param before undefined if nothing was counted
 */
export function chargeCounts(before: MessageCost | undefined, chargedPrice: number): CostCounts {
  const { cost = 0, estimatedCost = 0, unpriced = 0 } = before ? costCounts(before) : {}
  return { cost: chargedPrice - cost, estimatedCost: -estimatedCost, unpriced: -unpriced }
}

/** Adds to the counts of a message with a code of another system the part of the cost that is its own. */
export const relayedCounts = (counts: CostCounts): CostCounts =>
  counts.cost === undefined ? counts : { ...counts, relayedCost: counts.cost }

/** Counts a new request, and its message if it stays in the inbox. A provider's message counts once it was handed over. */
export const newRequestCounts = ({ provider }: OtpRequest): BreakdownChanges => ({
  requests: 1,
  sent: provider === inboxProvider ? 1 : 0,
})
