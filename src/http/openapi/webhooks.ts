import { Type } from '@sinclair/typebox'
import { channels, otpStatuses } from '../../domain/model/request.ts'
import { guardAlertReasons } from '../../shared/guard-alert.ts'
import { eventKinds, relayKinds, type EventKind } from '../../shared/event-kinds.ts'
import { nullable, object, oneOf, timestamp } from '../schemas.ts'
import { type createSchemaConverter, toPascalCase } from './schemas.ts'
import { environments, failureReasons, requestChannels } from '../../shared/otp-values.ts'

/** When each event happens. */
const eventTexts: Readonly<Record<EventKind, { summary: string; description: string }>> = {
  'otp.sent': {
    summary: 'A code was sent',
    description: 'A message with a code was created, by a send or a resend. It may still be on its way.',
  },
  'otp.delivered': {
    summary: 'A message was delivered',
    description: 'The provider reported that the message reached the phone.',
  },
  'otp.undelivered': {
    summary: 'A message was not delivered',
    description:
      'The provider reported that the message did not reach the phone. Another provider may be tried; `otp.failed` follows if none is left.',
  },
  'otp.verified': {
    summary: 'A code was verified',
    description: 'The user entered the right code. It happens once per request, and is final.',
  },
  'otp.failed': {
    summary: 'A request failed',
    description:
      '`failureReason` says why: five wrong codes (`max_attempts`), or no provider could deliver the message (`delivery_failed`).',
  },
  'otp.expired': {
    summary: 'A code expired',
    description: 'The right code was not entered in time. Sent within 30 seconds of `expiresAt`.',
  },
  'otp.canceled': {
    summary: 'A code was canceled',
    description: 'Your backend canceled the request, or the user’s data was erased.',
  },
  'otp.blocked': {
    summary: 'A message was blocked',
    description:
      'The fraud guard refused to send the message. A blocked send has failed; after a blocked resend, or a message that must not fail over to the next provider, the request is still pending.',
  },
  'session.verified': {
    summary: 'A phone was verified on the ready page',
    description:
      'The user entered the right code on the page of a session. It happens once per session, together with `otp.verified` of its request.',
  },
  'guard.alert': {
    summary: 'More messages than usual are not verified',
    description:
      'A country, or a prefix of its numbers, gets more messages than usual whose code is not entered, which is how SMS pumping looks. Sent to the endpoints of all your applications that subscribe to it, once an hour per country while it lasts.',
  },
  'message.sent': {
    summary: 'A code of your own was sent',
    description:
      'A provider took, or may have taken, the message of `POST /v1/otp/deliver`. Only endpoints that name this type get it; `*` does not include it.',
  },
  'message.delivered': {
    summary: 'A code of your own was delivered',
    description:
      'The provider reported that the message reached the phone. Only endpoints that name this type get it.',
  },
  'message.undelivered': {
    summary: 'A code of your own was not delivered',
    description:
      'No provider took the message, the provider reported that it did not arrive, or the fraud guard refused it. It is not sent again. Only endpoints that name this type get it.',
  },
}

const otpEventFields = {
  requestId: Type.String(),
  appId: Type.String(),
  projectId: Type.String(),
  environment: oneOf(environments),
  phone: Type.String(),
  country: nullable(Type.String()),
  status: oneOf(otpStatuses),
  failureReason: nullable(oneOf(failureReasons)),
  channel: oneOf(requestChannels),
  attempts: Type.Integer(),
  createdAt: timestamp,
  expiresAt: timestamp,
  verifiedAt: nullable(timestamp),
  metadata: nullable(Type.Record(Type.String(), Type.String())),
}

const otpEventData = object(otpEventFields, 'OtpEventData')

const sessionEventData = object(
  {
    sessionId: Type.String({ description: 'Id that the creation of the session responded with.' }),
    ...otpEventFields,
  },
  'SessionEventData',
)

const guardAlertData = object(
  {
    country: Type.String({ description: 'ISO 3166-1 alpha-2 code of the country.' }),
    prefix: nullable(
      Type.String({
        description: 'First digits of the numbers, with `+`; null if the whole country is meant.',
      }),
    ),
    reason: {
      ...oneOf(guardAlertReasons),
      description:
        '`rate`: three times as many unverified messages as usual, and at least one a minute. `nothing_verified`: 30 and more, and no phone was verified there in 14 days. `day`: half as many again as on any of the last 14 days. `pool`: the messages that all countries may send beyond their own allowances are spent. `allowance`: those of the country are spent, and its customers are refused. `relay_rate`, `relay_day`: as `rate` and `day`, of all codes of other systems (`POST /v1/otp/deliver`) together; `country` is that of the last one.',
    },
    unverified: Type.Integer({
      description:
        'Unverified messages of the last ten minutes (`rate`, `relay_rate`) or of the last 24 hours.',
    }),
    usual: Type.Integer({ description: 'As many as usual of that time.' }),
  },
  'GuardAlertData',
)

const messageEventData = object(
  {
    messageId: Type.String({ description: 'Id that the delivery responded with.' }),
    appId: Type.String(),
    projectId: Type.String(),
    environment: oneOf(environments),
    phone: Type.String(),
    country: nullable(Type.String()),
    status: oneOf(['sent', 'delivered', 'undelivered']),
    channel: oneOf(channels),
    createdAt: timestamp,
  },
  'MessageEventData',
)

const eventData = (kind: EventKind) => {
  if (kind === 'guard.alert') return guardAlertData
  if (kind === 'session.verified') return sessionEventData
  return relayKinds.some((one) => one === kind) ? messageEventData : otpEventData
}

/** `otp.sent` → `OtpSentEvent` */
const eventComponentName = (kind: EventKind) =>
  `${kind
    .split('.')
    .map((word) => toPascalCase(word))
    .join('')}Event`

const eventSchema = (kind: EventKind) =>
  object(
    {
      id: Type.String({
        description: 'Id of the event, also in the header `webhook-id`: the same in every attempt.',
        examples: ['evt_01kaaaaaaaeekr1q2v3w4x5y6z'],
      }),
      type: Type.Literal(kind, { description: 'Kind of the event.' }),
      timestamp: Type.String({
        format: 'date-time',
        description: 'Time of the event.',
        examples: ['2026-11-20T12:00:00.000Z'],
      }),
      data: eventData(kind),
      test: Type.Optional(
        Type.Boolean({ description: 'True for an event that the test of an endpoint sent.' }),
      ),
      traceparent: Type.Optional(
        Type.String({
          description:
            'W3C trace context of the call that caused the event, if it sent one. Also in the header `traceparent`.',
        }),
      ),
    },
    eventComponentName(kind),
  )

const header = (name: string, description: string, example: string, required = true) => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
  example,
})

const signatureParameters = [
  header('webhook-id', 'Id of the event. Use it for deduplication.', 'evt_01kaaaaaaaeekr1q2v3w4x5y6z'),
  header('webhook-timestamp', 'Time of the attempt, in Unix seconds.', '1795176000'),
  header(
    'webhook-signature',
    'Signature of Standard Webhooks 1.0 over `{id}.{timestamp}.{body}`, with the webhook secret of the application.',
    'v1,YForqA5y0HLhU/b+46qmStvR80u6DaHHtk9wY/o80/Y=',
  ),
  header(
    'traceparent',
    'W3C trace context of the call that caused the event, if it sent one.',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    false,
  ),
]

/**
 * Describes the events that are posted to webhook endpoints, as callbacks of the operation that creates one. Generators of
 * clients take callbacks; from `webhooks` of OpenAPI 3.1, openapi-generator and oapi-codegen make code that does not compile.
 */
export function describeWebhooks({ convert }: ReturnType<typeof createSchemaConverter>): object {
  return Object.fromEntries(
    eventKinds.map((kind) => [kind, { '{$request.body#/url}': { post: describeEvent(kind) } }]),
  )

  function describeEvent(kind: EventKind) {
    const { summary, description } = eventTexts[kind]
    return {
      operationId: `on${eventComponentName(kind).replace(/Event$/, '')}`,
      summary,
      description,
      tags: ['Webhooks'],
      security: [],
      parameters: signatureParameters,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: convert(eventSchema(kind), 'response') } },
      },
      responses: {
        '2XX': { description: 'Received. Any other status is a failure, and the event is sent again.' },
        '410': { description: 'Disables the endpoint.' },
      },
    }
  }
}
