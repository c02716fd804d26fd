import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { eventKinds } from '../../shared/event-kinds.ts'
import {
  webhookDeliveryStatuses,
  webhookErrors,
  type WebhookAttempt,
  type WebhookDelivery,
} from '../../domain/model/webhook-delivery.ts'
import type { DeliveryWithAttempts, WebhookDeliveryService } from '../../domain/webhooks/deliveries.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import { data, dateTime, idParams, nullable, object, oneOf, page, pageQuery, timestamp } from '../schemas.ts'

const error = nullable(oneOf(webhookErrors))

const statusDescription =
  '`pending`: to be sent, or sent again. `failed`: every retry was used up, or the receiver answered 410. `skipped`: the endpoint was disabled at the time of the event. Recover sends failed and skipped ones.'

const sharedProperties = {
  id: Type.String(),
  eventId: Type.String({ description: 'The `webhook-id` of every attempt.' }),
  type: Type.String(),
  status: { ...oneOf(webhookDeliveryStatuses), description: statusDescription },
  lastStatusCode: nullable(Type.Integer()),
  lastError: error,
  nextAttemptAt: nullable(timestamp),
  createdAt: timestamp,
  deliveredAt: nullable(timestamp),
}

const delivery = object({ ...sharedProperties, attempts: Type.Integer() }, 'WebhookDelivery')

const attempt = object(
  {
    at: timestamp,
    statusCode: nullable(
      Type.Integer({ description: 'HTTP status of the response; null if there was none.' }),
    ),
    error,
    durationMs: Type.Integer(),
    body: nullable(Type.String({ description: 'First 4 KiB of the response body.' })),
  },
  'WebhookAttempt',
)

const deliveryDetail = object(
  {
    ...sharedProperties,
    attempts: Type.Array(attempt, { description: 'Oldest first.' }),
    request: Type.Union(
      [
        object({
          url: Type.String(),
          headers: Type.Record(Type.String(), Type.String(), {
            description: 'Names in lower case. The values of your own headers are masked.',
          }),
          body: nullable(Type.String({ description: 'Null if it was deleted, or cannot be decrypted.' })),
        }),
        Type.Null(),
      ],
      {
        description:
          'The newest request as it was sent; null if none was sent, or an older version of otpd sent it.',
      },
    ),
  },
  'WebhookDeliveryDetail',
)

const presentShared = (row: WebhookDelivery) => ({
  id: row.id,
  eventId: row.eventId,
  type: row.type,
  status: row.status,
  lastStatusCode: row.lastStatusCode,
  lastError: row.lastError,
  nextAttemptAt: formatTimeOrNull(row.nextAttemptAt),
  createdAt: formatTime(row.createdAt),
  deliveredAt: formatTimeOrNull(row.deliveredAt),
})

const present = (row: WebhookDelivery) => ({ ...presentShared(row), attempts: row.attempts })

const presentAttempt = ({ at, statusCode, error, durationMs, body }: WebhookAttempt) => ({
  at: formatTime(at),
  statusCode,
  error,
  durationMs,
  body,
})

function presentDetail({ delivery, attempts, body }: DeliveryWithAttempts) {
  const sent = attempts.findLast(({ request }) => request !== null)?.request
  return {
    ...presentShared(delivery),
    attempts: attempts.map(presentAttempt),
    request: sent ? { url: sent.url, headers: { ...sent.headers }, body } : null,
  }
}

const params = object({ id: Type.String(), deliveryId: Type.String() })

/** Routes that list, redeliver and recover webhook deliveries. */
export function webhookDeliveryRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  webhookDeliveries: WebhookDeliveryService
}) {
  const { webhookDeliveries: deliveries } = services
  const detail = { tags: ['Webhooks'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/webhooks' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/:id/deliveries',
      ({ developer, path, query, params }) => {
        const { status, type } = query
        return services.paginate(
          { developer, path, query },
          (page) => deliveries.list(developer, params.id, { status, type }, page),
          present,
        )
      },
      {
        params: idParams,
        query: object({
          ...pageQuery,
          status: Type.Optional({ ...oneOf(webhookDeliveryStatuses), description: statusDescription }),
          type: Type.Optional(oneOf(eventKinds)),
        }),
        response: { 200: page(delivery) },
        detail: {
          ...detail,
          operationId: 'listWebhookDeliveries',
          summary: 'List the deliveries of an endpoint, newest first',
          description: 'Lists what was sent, or waits to be sent, to an endpoint.',
        },
      },
    )
    .get(
      '/:id/deliveries/:deliveryId',
      async ({ developer, params }) => ({
        data: presentDetail(await deliveries.get(developer, params.id, params.deliveryId)),
      }),
      {
        params,
        response: { 200: data(deliveryDetail) },
        detail: {
          ...detail,
          operationId: 'getWebhookDelivery',
          summary: 'Get a delivery with its attempts',
          description: "Returns one delivery with each attempt and the beginning of the receiver's response.",
        },
      },
    )
    .post(
      '/:id/deliveries/:deliveryId/redeliver',
      async ({ developer, params }) => ({
        data: presentDetail(await deliveries.redeliver(developer, params.id, params.deliveryId)),
      }),
      {
        params,
        response: { 200: data(deliveryDetail) },
        detail: {
          ...detail,
          operationId: 'redeliverWebhook',
          summary: 'Redeliver an event immediately, with the same webhook-id',
          description:
            'Sends the event again at once, with the current URL, secret and headers, and returns the delivery with the new attempt. A failure changes no status and is not retried.',
        },
      },
    )
    .post(
      '/:id/recover',
      async ({ developer, params, body }) => {
        const since = Date.parse(body.since)
        const until = body.until === undefined ? undefined : Date.parse(body.until)
        return { data: { recovered: await deliveries.recover(developer, params.id, { since, until }) } }
      },
      {
        params: idParams,
        body: object({ since: dateTime, until: Type.Optional(dateTime) }),
        response: {
          200: data(
            object(
              { recovered: Type.Integer({ description: 'Number of deliveries that are sent now.' }) },
              'WebhookRecovery',
            ),
          ),
        },
        detail: {
          ...detail,
          operationId: 'recoverWebhook',
          summary: 'Requeue deliveries of events between since and until',
          description:
            'Sends those that failed, were skipped while the endpoint was disabled, or wait for a retry, at once and with a new retry schedule.',
        },
      },
    )
}
