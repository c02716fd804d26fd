import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { eventKinds } from '../../domain/model/event-kinds.ts'
import {
  deliveryStatuses,
  webhookErrors,
  type Attempt,
  type WebhookDelivery,
} from '../../domain/webhooks/delivery.ts'
import type { DeliveryWithAttempts, WebhookDeliveryService } from '../../domain/webhooks/deliveries.ts'
import { consoleAuth, type ConsoleAuth } from '../require-developer.ts'
import { jsonBody } from '../json-body.ts'
import { pageAnswer, readPage, time, timeOrNull } from '../pages.ts'
import {
  consoleBodyErrors,
  consoleErrors,
  data,
  errorBody,
  idParams,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

const error = nullable(oneOf(webhookErrors))

const shared = {
  id: Type.String(),
  eventId: Type.String({ description: 'The `webhook-id` of every attempt.' }),
  type: Type.String(),
  status: oneOf(deliveryStatuses),
  lastStatusCode: nullable(Type.Integer()),
  lastError: error,
  nextAttemptAt: nullable(timestamp),
  createdAt: timestamp,
  deliveredAt: nullable(timestamp),
}

const delivery = object({ ...shared, attempts: Type.Integer() }, 'WebhookDelivery')

const attempt = object(
  {
    at: timestamp,
    statusCode: nullable(Type.Integer({ description: 'Null where none came.' })),
    error,
    durationMs: Type.Integer(),
    body: nullable(Type.String({ description: 'The beginning of the answer, at most 4 KiB.' })),
  },
  'WebhookAttempt',
)

const deliveryDetail = object(
  { ...shared, attempts: Type.Array(attempt, { description: 'Oldest first.' }) },
  'WebhookDeliveryDetail',
)

const presentShared = (row: WebhookDelivery) => ({
  id: row.id,
  eventId: row.eventId,
  type: row.type,
  status: row.status,
  lastStatusCode: row.lastStatusCode,
  lastError: row.lastError,
  nextAttemptAt: timeOrNull(row.nextAttemptAt),
  createdAt: time(row.createdAt),
  deliveredAt: timeOrNull(row.deliveredAt),
})

const present = (row: WebhookDelivery) => ({ ...presentShared(row), attempts: row.attempts })

const presentAttempt = ({ at, statusCode, error, durationMs, body }: Attempt) => ({
  at: time(at),
  statusCode,
  error,
  durationMs,
  body,
})

const presentDetail = ({ delivery, attempts }: DeliveryWithAttempts) => ({
  ...presentShared(delivery),
  attempts: attempts.map(presentAttempt),
})

const params = object({ id: Type.String(), deliveryId: Type.String() })

/** RFC 3339; the framework's own format takes a bare date, too. */
const moment = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,9})?(Z|[+-]\\d\\d:\\d\\d)$',
  errorText: 'Expected a time such as 2026-11-20T12:00:00Z',
  documentedAs: { type: 'string', format: 'date-time' },
})

export function webhookDeliveryRoutes(services: {
  consoleAuth: ConsoleAuth
  webhookDeliveries: WebhookDeliveryService
}) {
  const { webhookDeliveries: deliveries } = services
  const detail = { tags: ['Webhooks'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/webhooks' })
    .use(jsonBody)
    .use(consoleAuth(services.consoleAuth))
    .get(
      '/:id/deliveries',
      async ({ developer, params, query }) => {
        const { status, type } = query
        const found = await deliveries.list(developer, params.id, { status, type }, readPage(query))
        return pageAnswer(found, present)
      },
      {
        params: idParams,
        query: object({
          ...pageQuery,
          status: Type.Optional(oneOf(deliveryStatuses)),
          type: Type.Optional(oneOf(eventKinds)),
        }),
        response: { 200: page(delivery), ...consoleErrors },
        detail: {
          ...detail,
          operationId: 'listWebhookDeliveries',
          summary: 'What became of the events for an endpoint, newest first, while they are kept',
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
        response: { 200: data(deliveryDetail), ...consoleErrors },
        detail: {
          ...detail,
          operationId: 'getWebhookDelivery',
          summary: 'Get a delivery with its attempts',
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
        response: { 200: data(deliveryDetail), ...consoleErrors, 429: errorBody },
        detail: {
          ...detail,
          operationId: 'redeliverWebhook',
          summary: 'Send the event once more, now, with the same webhook-id',
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
        body: object({ since: moment, until: Type.Optional(moment) }),
        response: {
          200: data(
            object(
              { recovered: Type.Integer({ description: 'How many were put back into the queue.' }) },
              'WebhookRecovery',
            ),
          ),
          ...consoleBodyErrors,
        },
        detail: {
          ...detail,
          operationId: 'recoverWebhook',
          summary: 'Send again what failed, of the events from since to until',
        },
      },
    )
}
