import { Type, type TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { subscriptions } from '../../shared/event-kinds.ts'
import { webhookErrors } from '../../domain/model/webhook-delivery.ts'
import { webhookUrlLengthMax, type WebhookEndpointService } from '../../domain/webhooks/endpoints.ts'
import type { ApplicationService } from '../../domain/apps/applications.ts'
import type { WebhookEndpoint } from '../../domain/model/webhook-endpoint.ts'
import { maskedValue } from '../../domain/model/webhook-delivery.ts'
import { headerNamePattern, headerValuePattern, webhookHeadersMax } from '../../domain/webhooks/headers.ts'
import type { WebhookTester } from '../../domain/webhooks/test-event.ts'
import { changesBody } from '../field-schemas.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { setReplayedHeader, type ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import {
  data,
  deleted,
  idempotencyKey,
  idParams,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  text,
  timestamp,
} from '../schemas.ts'

const url = Type.String({
  minLength: 1,
  maxLength: webhookUrlLengthMax,
  description: 'Public https URL without user name, password or fragment.',
  errorText: `Expected an https URL of up to ${webhookUrlLengthMax} characters`,
})

const subscription = oneOf(subscriptions)

const events = Type.Array(subscription, {
  minItems: 1,
  uniqueItems: true,
  description:
    'Event types to subscribe to; `*` is all of them, including types that later versions add, except the `message.` types of codes that `POST /v1/otp/deliver` sends.',
  errorText: 'Expected at least one event type, each of them once',
})

const status = oneOf(['enabled', 'disabled'])

const description = nullable(text(280, 'Expected up to 280 characters, or null'))

const headerValue = Type.String({
  pattern: headerValuePattern,
  errorText: 'Expected 1 to 1024 visible ASCII characters; spaces only between them',
})

const headersSchema = <T extends TSchema>(value: T, description: string) =>
  Type.Record(Type.String({ pattern: headerNamePattern }), value, {
    maxProperties: webhookHeadersMax,
    additionalProperties: false,
    description,
    errorText: `Expected at most ${webhookHeadersMax} headers with names of up to 64 letters, digits and hyphens`,
  })

const newHeaders = headersSchema(
  headerValue,
  'Additional headers to send with every event, such as a credential of the receiver. Their values are never shown again.',
)

const changedHeaders = headersSchema(
  nullable(headerValue),
  'A value sets the header, null removes it; headers that are not named stay unchanged, unless the origin of the URL changes: then they are removed.',
)

const endpoint = object(
  {
    id: Type.String(),
    appId: Type.String(),
    url: Type.String(),
    events: Type.Array(subscription),
    status,
    description: nullable(Type.String()),
    headers: Type.Record(Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }), Type.Literal(maskedValue), {
      additionalProperties: false,
      description: 'Your additional headers, with names in lower case and masked values.',
    }),
    droppedHeaders: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Only in the response to a change: names of the additional headers that were removed, because the origin of the URL changed and the change did not give them again.',
      }),
    ),
    disabledReason: nullable(
      Type.String({
        description:
          'Why the server disabled the endpoint: `failing` (no success for 120 hours) or `gone` (it responded 410). Null if you disabled it, or if it is enabled.',
      }),
    ),
    failingSince: nullable(timestamp),
    lastDeliveryAt: nullable(timestamp),
    createdAt: timestamp,
    updatedAt: timestamp,
  },
  'WebhookEndpoint',
)

const testResult = object(
  {
    delivered: Type.Boolean(),
    statusCode: Type.Integer({ description: 'HTTP status of the response; 0 if there was none.' }),
    error: Type.Optional(oneOf(webhookErrors)),
  },
  'WebhookTestResult',
)

const present = (row: WebhookEndpoint) => ({
  id: row.id,
  appId: row.appId,
  url: row.url,
  events: row.events,
  status: row.status,
  description: row.description,
  headers: Object.fromEntries(
    Object.keys(row.headers).map((name): [string, typeof maskedValue] => [name, maskedValue]),
  ),
  disabledReason: row.disabledReason,
  failingSince: formatTimeOrNull(row.failingSince),
  lastDeliveryAt: formatTimeOrNull(row.lastDeliveryAt),
  createdAt: formatTime(row.createdAt),
  updatedAt: formatTime(row.updatedAt),
})

/** Routes that manage and test webhook endpoints. */
export function webhookRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  readIdempotency: ReadIdempotency
  paginate: Paginate
  applications: Pick<ApplicationService, 'requireFilter'>
  webhookEndpoints: WebhookEndpointService
  webhookTester: WebhookTester
}) {
  const { webhookEndpoints: endpoints, webhookTester } = services
  const detail = { tags: ['Webhooks'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/webhooks' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      async ({ developer, path, query }) => {
        await services.applications.requireFilter(developer, query.appId)
        return services.paginate(
          { developer, path, query },
          (page) => endpoints.list(developer, query.appId, page),
          present,
        )
      },
      {
        query: object({
          ...pageQuery,
          appId: Type.Optional(Type.String({ description: 'Only endpoints of this application.' })),
        }),
        response: { 200: page(endpoint) },
        detail: {
          ...detail,
          operationId: 'listWebhooks',
          summary: 'List webhook endpoints, newest first',
          description:
            'Lists your webhook endpoints, of all applications or of one. Values of additional headers are masked.',
        },
      },
    )
    .post(
      '/',
      async ({ developer, body, headers, set }) => {
        const scope = services.readIdempotency(headers, developer.id, 'POST /v1/webhooks', body)
        const result = await endpoints.create(developer, body, scope)
        setReplayedHeader(set.headers, result.replayed)
        set.status = 201
        return { data: present(result.value) }
      },
      {
        body: object({
          appId: Type.String(),
          url,
          events,
          description: Type.Optional(description),
          headers: Type.Optional(newHeaders),
        }),
        response: { 201: data(endpoint) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'createWebhook',
          summary: 'Create a webhook endpoint',
          description:
            'Registers a URL that receives the events of an application, signed as Standard Webhooks 1.0 specifies. Respond with a 2xx within 15 seconds; other responses are retried for 28 hours. Private, loopback and reserved addresses are refused, unless the operator allows them.',
        },
      },
    )
    .get(
      '/:id',
      async ({ developer, params }) => ({ data: present(await endpoints.get(developer, params.id)) }),
      {
        params: idParams,
        response: { 200: data(endpoint) },
        detail: {
          ...detail,
          operationId: 'getWebhook',
          summary: 'Get a webhook endpoint',
          description: 'Returns one webhook endpoint.',
        },
      },
    )
    .patch(
      '/:id',
      async ({ developer, params, body }) => {
        const { droppedHeaders, ...changed } = await endpoints.update(developer, params.id, body)
        return { data: { ...present(changed), ...(droppedHeaders.length > 0 && { droppedHeaders }) } }
      },
      {
        params: idParams,
        body: changesBody({ url, events, status, description, headers: changedHeaders }),
        response: { 200: data(endpoint) },
        detail: {
          ...detail,
          operationId: 'updateWebhook',
          summary: 'Change the URL, events, status, description or headers',
          description:
            'Changes the fields that you send and leaves all others as they are. If the origin of the URL changes, additional headers that you do not send again are removed.',
        },
      },
    )
    .delete(
      '/:id',
      async ({ developer, params }) => {
        await endpoints.delete(developer, params.id)
        return { data: { id: params.id, deleted: true } }
      },
      {
        params: idParams,
        response: { 200: deleted },
        detail: {
          ...detail,
          operationId: 'deleteWebhook',
          summary: 'Delete a webhook endpoint',
          description:
            'Deletes the endpoint with its deliveries, undelivered ones included. With very many it takes longer, and goes on if you hang up.',
        },
      },
    )
    .post(
      '/:id/test',
      async ({ developer, params }) => ({ data: await webhookTester.test(developer, params.id) }),
      {
        params: idParams,
        response: { 200: data(testResult) },
        detail: {
          ...detail,
          operationId: 'testWebhook',
          summary: 'Send a signed test event (otp.verified) immediately and return the response',
          description: `Sends one \`otp.verified\` event with sample data and \`"test": true\`, even to a disabled endpoint, and returns the receiver's response. Nothing is stored or retried.`,
        },
      },
    )
}
