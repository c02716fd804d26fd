import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ApiTokenService } from '../../domain/apps/api-tokens.ts'
import { maskApiToken, type ApiToken } from '../../domain/model/api-token.ts'
import { apiTokenScopes } from '../../shared/api-token-scopes.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { setReplayedHeader, type ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import {
  data,
  dateTime,
  deleted,
  idempotencyKey,
  idParams,
  name,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

const scope = oneOf(apiTokenScopes)

const properties = {
  id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(scope),
  preview: Type.String({ description: 'Prefix, first four and last four characters of the token.' }),
  createdAt: timestamp,
  expiresAt: nullable(timestamp),
  lastUsedAt: nullable(timestamp),
}

const apiToken = object(properties, 'ApiToken')

const createdApiToken = object(
  { ...properties, token: Type.String({ description: 'Returned only in this response.' }) },
  'CreatedApiToken',
)

const newApiToken = object({
  name,
  scopes: Type.Array(scope, {
    minItems: 1,
    uniqueItems: true,
    description: '`otp:read` is part of every other scope; `write` includes all of them.',
    errorText: 'Expected at least one scope, each of them once',
  }),
  expiresAt: Type.Optional({
    ...nullable(dateTime),
    description: 'At most ten years away. Null: never. If omitted, the token expires after 90 days.',
  }),
})

const present = (row: ApiToken) => ({
  id: row.id,
  name: row.name,
  scopes: [...row.scopes],
  preview: maskApiToken(row.preview),
  createdAt: formatTime(row.createdAt),
  expiresAt: formatTimeOrNull(row.expiresAt),
  lastUsedAt: formatTimeOrNull(row.lastUsedAt),
})

const parseTime = (text: string | null | undefined) => (typeof text === 'string' ? Date.parse(text) : text)

/** Routes that manage the developer's own API tokens. They require a login. */
export function tokenRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  readIdempotency: ReadIdempotency
  apiTokens: ApiTokenService
}) {
  const { apiTokens } = services
  const detail = { tags: ['API tokens'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/tokens' })
    .use(jsonBody)
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) =>
        services.paginate({ developer, path, query }, (page) => apiTokens.list(developer, page), present),
      {
        query: object(pageQuery),
        response: { 200: page(apiToken) },
        detail: {
          ...detail,
          operationId: 'listApiTokens',
          summary: 'List API tokens, newest first',
          description: 'Lists your API tokens. Their values are never listed.',
        },
      },
    )
    .post(
      '/',
      async ({ developer, body, headers, set }) => {
        const idempotency = services.readIdempotency(headers, developer.id, 'POST /v1/tokens', body)
        const input = { ...body, expiresAt: parseTime(body.expiresAt) }
        const { value: created, replayed } = await apiTokens.create(developer, input, idempotency)
        setReplayedHeader(set.headers, replayed)
        set.status = 201
        return { data: { ...present(created), token: created.value } }
      },
      {
        body: newApiToken,
        response: { 201: data(createdApiToken) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'createApiToken',
          summary: 'Create an API token; the response is the only one that contains it',
          description:
            'Creates a token with which a program calls this API in your name, limited by scopes. It may have the name of a token that has expired, which is then no longer listed. Requires a login: API tokens cannot make others.',
        },
      },
    )
    .delete(
      '/:id',
      async ({ developer, params }) => {
        await apiTokens.revoke(developer, params.id)
        return { data: { id: params.id, deleted: true } }
      },
      {
        params: idParams,
        response: { 200: deleted },
        detail: {
          ...detail,
          operationId: 'revokeApiToken',
          summary: 'Revoke an API token; calls and streams with it end at once',
          description: 'Revokes a token. Calls and streams with it end at once.',
        },
      },
    )
}
