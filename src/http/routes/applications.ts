import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ApplicationService, CreatedApplication } from '../../domain/apps/applications.ts'
import type { ApplicationView } from '../../domain/model/application.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { nullableNames, pick, requiredNames } from '../../shared/fields.ts'
import { changesBody, optionalSchemas, requestSchemas, responseSchemas } from '../field-schemas.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { setReplayedHeader, type ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import {
  data,
  deleted,
  idempotencyKey,
  idParams,
  name,
  object,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

const environment = Type.Union([Type.Literal('live'), Type.Literal('test')], {
  errorText: 'Expected live or test',
})
const status = Type.Union([Type.Literal('active'), Type.Literal('disabled')], {
  errorText: 'Expected active or disabled',
})
const rotationType = Type.Union(
  [Type.Literal('secret'), Type.Literal('api'), Type.Literal('webhook_secret')],
  { errorText: 'Expected secret, api or webhook_secret' },
)
const settings = responseSchemas(applicationFields)
const initialSettings = optionalSchemas(applicationFields)
const requiredSettings = requiredNames(applicationFields)
/** Null until the developer sets them; the response to a creation omits them. */
const nullableSettings = nullableNames(applicationFields)

const sharedProperties = {
  id: Type.String(),
  name: Type.String(),
  projectId: Type.String(),
  environment,
  status,
  clientId: Type.String(),
  ...pick(settings, requiredSettings),
  createdAt: timestamp,
  updatedAt: timestamp,
}

const preview = Type.String({ description: 'Prefix, first four and last four characters of the credential.' })
const rotatedAt = Type.Optional(
  Type.String({ format: 'date-time', description: 'Time of the last rotation; absent before the first.' }),
)

const application = object(
  {
    ...sharedProperties,
    clientSecretPreview: preview,
    apiKeyPreview: preview,
    ...pick(settings, nullableSettings),
    clientSecretRotatedAt: rotatedAt,
    apiKeyRotatedAt: rotatedAt,
    webhookSecretRotatedAt: rotatedAt,
  },
  'Application',
)

const createdApplication = object(
  {
    ...sharedProperties,
    clientSecret: Type.String({ description: 'Returned only in this response.' }),
    apiKey: Type.String({ description: 'Returned only in this response.' }),
    webhookSecret: Type.String(),
    warning: Type.String(),
  },
  'CreatedApplication',
)

const rotatedCredential = object(
  {
    type: rotationType,
    value: Type.String({ description: 'The new credential. The old one no longer works.' }),
    rotatedAt: timestamp,
  },
  'RotatedCredential',
)

const presentShared = (row: ApplicationView) => ({
  id: row.id,
  name: row.name,
  projectId: row.projectId,
  environment: row.environment,
  status: row.status,
  clientId: row.clientId,
  ...pick(row, requiredSettings),
  createdAt: formatTime(row.createdAt),
  updatedAt: formatTime(row.updatedAt),
})

const present = (row: ApplicationView) => ({
  ...presentShared(row),
  clientSecretPreview: row.clientSecretPreview,
  apiKeyPreview: row.apiKeyPreview,
  ...pick(row, nullableSettings),
  ...(row.clientSecretRotatedAt !== null && { clientSecretRotatedAt: formatTime(row.clientSecretRotatedAt) }),
  ...(row.apiKeyRotatedAt !== null && { apiKeyRotatedAt: formatTime(row.apiKeyRotatedAt) }),
  ...(row.webhookSecretRotatedAt !== null && {
    webhookSecretRotatedAt: formatTime(row.webhookSecretRotatedAt),
  }),
})

const presentCreated = ({ application, secrets }: CreatedApplication) => ({
  ...presentShared(application),
  ...secrets,
  warning: 'Store the client secret and the API key now: they cannot be shown again.',
})

/** Routes that manage applications and their credentials. */
export function applicationRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  readIdempotency: ReadIdempotency
  paginate: Paginate
  applications: ApplicationService
}) {
  const { applications } = services
  const detail = { tags: ['Applications'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/applications' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) => {
        return services.paginate(
          { developer, path, query },
          (page) => applications.list(developer, query.projectId, page),
          present,
        )
      },
      {
        query: object({
          projectId: Type.Optional(Type.String({ description: 'Only applications of this project.' })),
          ...pageQuery,
        }),
        response: { 200: page(application) },
        detail: {
          ...detail,
          operationId: 'listApplications',
          summary: 'List applications, newest first',
          description: 'Lists your applications, of all projects or of one. Secrets are never listed.',
        },
      },
    )
    .post(
      '/',
      async ({ developer, body, headers, set }) => {
        const scope = services.readIdempotency(headers, developer.id, 'POST /v1/applications', body)
        const result = await applications.create(developer, body, scope)
        setReplayedHeader(set.headers, result.replayed)
        set.status = 201
        return { data: presentCreated(result.value) }
      },
      {
        body: object({ name, projectId: Type.String(), environment, ...initialSettings }),
        response: { 201: data(createdApplication) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'createApplication',
          summary: 'Create an application and its credentials',
          description:
            'Creates an application and its four credentials. The client secret and the API key are in this response only: store them now. Requires a project, and counts towards the limit of your plan.',
        },
      },
    )
    .get(
      '/:id',
      async ({ developer, params }) => ({ data: present(await applications.get(developer, params.id)) }),
      {
        params: idParams,
        response: { 200: data(application) },
        detail: {
          ...detail,
          operationId: 'getApplication',
          summary: 'Get an application',
          description: 'Returns one application, with previews of its client secret and API key.',
        },
      },
    )
    .patch(
      '/:id',
      async ({ developer, params, body }) => ({
        data: present(await applications.update(developer, params.id, body)),
      }),
      {
        params: idParams,
        body: changesBody({ name, status, ...requestSchemas(applicationFields) }),
        response: { 200: data(application) },
        detail: {
          ...detail,
          operationId: 'updateApplication',
          summary: 'Change the name, the status or settings',
          description:
            'Changes the fields that you send and leaves all others as they are. Null clears a nullable field. A disabled application is refused from its next call on.',
        },
      },
    )
    .delete(
      '/:id',
      async ({ developer, params }) => {
        await applications.delete(developer, params.id)
        return { data: { id: params.id, deleted: true } }
      },
      {
        params: idParams,
        response: { 200: deleted },
        detail: {
          ...detail,
          operationId: 'deleteApplication',
          summary: 'Delete an application with its credentials and webhooks',
          description:
            'Deletes the application, its credentials, its webhook endpoints and their undelivered events. Its OTP requests, log entries and counts stay. It cannot be undone. With very many events it takes longer, and goes on if you hang up; until then the application works.',
        },
      },
    )
    .post(
      '/:id/rotate/:type',
      async ({ developer, params }) => {
        const { type, value, rotatedAt } = await applications.rotate(developer, params.id, params.type)
        return { data: { type, value, rotatedAt: formatTime(rotatedAt) } }
      },
      {
        params: object({ id: Type.String(), type: rotationType }),
        response: { 200: data(rotatedCredential) },
        detail: {
          ...detail,
          operationId: 'rotateCredential',
          summary: 'Rotate a credential; the old one stops working immediately',
          description:
            'Replaces the client secret, the API key or the webhook secret, and returns the new value, which is not shown again (but for the webhook secret). Calls with the old one are refused at once.',
        },
      },
    )
    .get(
      '/:id/webhook-secret',
      async ({ developer, params }) => ({
        data: { webhookSecret: await applications.webhookSecret(developer, params.id) },
      }),
      {
        params: idParams,
        response: { 200: data(object({ webhookSecret: Type.String() }, 'WebhookSecret')) },
        detail: {
          ...detail,
          operationId: 'getWebhookSecret',
          summary: 'Get the current webhook secret',
          description:
            'Returns the secret that signs the events of the application. Every Standard Webhooks library verifies with it as it is.',
        },
      },
    )
}
