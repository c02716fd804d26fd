import { alertChange } from '../../../src/domain/guard/alert.ts'
import { eventBody } from '../../../src/domain/log/changes.ts'
import { relayEventChange } from '../../../src/domain/log/relay-events.ts'
import type { OtpRequest } from '../../../src/domain/model/request.ts'
import {
  eventKinds,
  logTypes,
  relayKinds,
  type EventKind,
  type LogType,
  type RelayKind,
} from '../../../src/shared/event-kinds.ts'

type Description = { when: string; detail?: string }

/** When each event happens, and what the `detail` of its log entry says. A new type without a text does not compile. */
const descriptions: Record<LogType, Description> = {
  'otp.sent': {
    when: 'A code was made for a phone: a send returned 201. Each resend is one more, for the same request.',
    detail: '`resend` for a resend',
  },
  'otp.delivered': {
    when: 'A receipt of the provider says that the phone got the message. Not every provider, network or country sends receipts.',
  },
  'otp.undelivered': {
    when: 'A receipt says that the message did not arrive, or no provider took it. If there is another route, the same code goes out through it.',
    detail: 'why',
  },
  'otp.verified': { when: 'The right code was entered. At most once per request.' },
  'otp.failed': {
    when: 'The request ended without success: five wrong codes, or no message can arrive any more. `failureReason` says which.',
    detail: '`max_attempts` or `delivery_failed`',
  },
  'otp.expired': {
    when: 'The code was not entered in time. The event can come some seconds after `expiresAt`.',
  },
  'otp.canceled': {
    when: 'Your backend canceled the request, or the operator replaced the data keys or erased the phone.',
  },
  'otp.blocked': {
    when: 'The guard refused the destination, so no message was sent and the send returned 403.',
    detail: 'the rule',
  },
  'session.verified': {
    when: 'The right code was entered on the ready page. At most once per session, right after `otp.verified` of its request.',
    detail: 'the session',
  },
  'guard.alert': {
    when: 'A country or a prefix gets more messages than usual that are not verified, as under an attack. Every application of the developer gets it.',
    detail: 'the country and its figures',
  },
  'message.sent': {
    when: 'A provider took, or may have taken, a code that `POST /v1/otp/deliver` sends. There is no OTP request; the log entry has the id of the message as its `requestId`. Only endpoints that name the `message.` events get them: `*` does not.',
    detail: 'nothing, or why it is not certain',
  },
  'message.delivered': { when: 'A receipt of the provider says that the phone got such a message.' },
  'message.undelivered': {
    when: 'A receipt says that such a message did not arrive, no provider took it, or the guard refused the destination. It is not sent again.',
    detail: 'why',
  },
  'message.verified': { when: 'The application reported that the code of such a message was entered.' },
  'message.failed': { when: 'The application reported that the code of such a message was not entered.' },
  'otp.attempt_failed': {
    when: 'A wrong code was entered, and attempts are left.',
    detail: 'nothing, or the attempt',
  },
  'otp.refused': {
    when: 'A limit refused a send or a resend: the rate of the application or the send limit of the phone; or the user must pass a challenge first. At most one entry a minute and phone; its `requestId` is the request that the refused sends follow, null for a phone without one.',
    detail: 'the reason, how many were refused since when, and when the next is admitted',
  },
  'webhook.disabled': {
    when: 'The server disabled a webhook endpoint: it answered 410, or failed for 120 hours.',
    detail: 'the endpoint and why',
  },
  'guard.flagged': {
    when: 'The guard would have refused this send, but only monitors, or the user passed a challenge.',
    detail: 'the rule, and `CHALLENGE_PASSED` after a challenge',
  },
}

/** Builds the page of all events: those of webhooks with their bodies, then those that only the log has. */
export function eventReference(): string {
  const isEvent = (type: LogType): type is EventKind => eventKinds.some((kind) => kind === type)
  const webhookEvents = logTypes.filter(isEvent).map((type) => {
    const body = JSON.stringify(JSON.parse(exampleBody(type)), null, 2)
    return `### ${type}\n\n${describe(type)}\n\n\`\`\`json\n${body}\n\`\`\``
  })
  const logOnly = logTypes.filter((type) => !isEvent(type)).map((type) => `### ${type}\n\n${describe(type)}`)
  return ['## Events of webhooks', ...webhookEvents, '## Only in the log', ...logOnly].join('\n\n')
}

function describe(type: LogType): string {
  const { when, detail } = descriptions[type]
  return detail === undefined ? when : `${when}\n\nThe log entry's \`detail\`: ${detail}.`
}

const createdAt = Date.UTC(2026, 10, 20, 12)

/** Status, failure and time of the example of each event. */
const examples: Record<
  Exclude<EventKind, 'guard.alert' | RelayKind>,
  Partial<OtpRequest> & { afterMs: number }
> = {
  'otp.sent': { afterMs: 0 },
  'otp.delivered': { afterMs: 2_400, deliveryStatus: 'delivered' },
  'otp.undelivered': { afterMs: 4_100, deliveryStatus: 'undelivered' },
  'otp.verified': { afterMs: 21_300, status: 'verified', attempts: 1, verifiedAt: createdAt + 21_300 },
  'otp.failed': { afterMs: 64_000, status: 'failed', failureReason: 'max_attempts', attempts: 5 },
  'otp.expired': { afterMs: 303_000, status: 'expired' },
  'otp.canceled': { afterMs: 9_000, status: 'canceled' },
  'otp.blocked': { afterMs: 0, status: 'failed', failureReason: 'blocked' },
  'session.verified': { afterMs: 21_300, status: 'verified', attempts: 1, verifiedAt: createdAt + 21_300 },
}

/** Builds the body of an event with the code that builds it for webhooks. */
function exampleBody(type: EventKind): string {
  if (type === 'guard.alert') {
    const alert = { country: 'ID', prefix: null, reason: 'rate' as const, unverified: 84, usual: 6 }
    const change = alertChange(() => eventId, exampleRequest, alert, [], createdAt)
    return change.kind === 'event' ? change.event.toPayload(eventId) : '{}'
  }
  if (isRelayKind(type)) {
    const message = { ...exampleRequest, id: 'msg_01kaga0rf0f4wv7m2n8q3s9xyz' }
    const change = relayEventChange(() => eventId, type, message, [], createdAt)
    return change.kind === 'event' ? change.event.toPayload(eventId) : '{}'
  }
  const { afterMs, ...changes } = examples[type]
  const sessionId = type === 'session.verified' ? 'ses_01kaga0rf0f4wv7m2n8q3s9xyz' : undefined
  const metadata = sessionId === undefined ? exampleRequest.metadata : { sessionId }
  const request = { ...exampleRequest, ...changes, metadata }
  return JSON.stringify(eventBody(eventId, type, request, createdAt + afterMs, sessionId))
}

const isRelayKind = (type: EventKind): type is RelayKind => relayKinds.some((kind) => kind === type)

const eventId = 'evt_01kaga0rf0e008k3q9v1m6c2xt'

const exampleRequest: OtpRequest = {
  id: 'otp_01kaga0rf0f4wv7m2n8q3s9xyz',
  developerId: 'dev_01kaga0rf0f4wv7m2n8q3s9xyz',
  projectId: 'prj_01kaga0rf0f4wv7m2n8q3s9xyz',
  appId: 'app_01kaga0rf0f4wv7m2n8q3s9xyz',
  environment: 'live',
  phone: '+447700900123',
  country: 'GB',
  status: 'pending',
  failureReason: null,
  channel: 'sms',
  provider: 'main',
  deliveryStatus: 'sent',
  locale: null,
  clientIp: null,
  metadata: { order: '4711' },
  codeSalt: '',
  codeHash: '',
  history: '',
  attempts: 0,
  resends: 0,
  createdAt,
  sentAt: createdAt,
  expiresAt: createdAt + 300_000,
  verifiedAt: null,
  previousRequest: null,
  startedBy: null,
  contexts: [],
  ownText: null,
  template: null,
  compat: null,
  updatedAt: createdAt,
}
