import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { notFound } from '../../domain/model/errors.ts'
import type { IdentityService } from '../../domain/otp/identities.ts'
import type { Identity } from '../../domain/model/identity.ts'
import { tryParsePhone } from '../../domain/model/phone.ts'
import { requireEither } from '../require-application.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import {
  consoleErrors,
  data,
  environmentQuery,
  environments,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

const identity = object(
  {
    id: Type.String(),
    environment: {
      ...oneOf(environments),
      description:
        'Environment of the applications that verified the phone number. Each has users of its own.',
    },
    phone: Type.String(),
    country: nullable(Type.String()),
    verificationCount: Type.Integer(),
    applications: Type.Array(Type.String(), {
      description: 'Ids of the applications that verified the phone number.',
    }),
    firstVerifiedAt: timestamp,
    lastVerifiedAt: timestamp,
  },
  'VirtualPhoneIdentity',
)

const present = (row: Identity) => ({
  id: row.id,
  environment: row.environment,
  phone: row.phone,
  country: row.country,
  verificationCount: row.verificationCount,
  applications: [...row.applications],
  firstVerifiedAt: formatTime(row.firstVerifiedAt),
  lastVerifiedAt: formatTime(row.lastVerifiedAt),
})

/** Routes for virtual phone identities. */
export function userRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  appAuth: AppAuth
  callLimits: CallLimits
  identities: IdentityService
}) {
  const { identities } = services
  const tags = ['Users']

  const list = new Elysia()
    .use(requireDeveloper(services.authenticateDeveloper))
    .get(
      '/',
      ({ developer, path, query }) =>
        services.paginate(
          { developer, path, query },
          (page) => identities.list(developer, page, query.environment),
          present,
        ),
      {
        query: object({ ...pageQuery, environment: environmentQuery }),
        response: { 200: page(identity), ...consoleErrors },
        detail: {
          tags,
          security: [{ console: [] }],
          operationId: 'listUsers',
          summary: 'List virtual phone identities, newest first',
          description: 'Lists the phone numbers that your applications have verified.',
        },
      },
    )

  const get = new Elysia().use(requireEither(services, 'api_key_only')).get(
    '/:phoneNumber',
    async ({ caller, params, query }) => {
      const phone = tryParsePhone(params.phoneNumber)
      if (!phone) throw notFound('user')
      if (caller.kind === 'developer')
        return {
          data: present(await identities.getByPhone(caller.developer.id, phone.phone, query.environment)),
        }
      const { developerId, environment } = caller.application
      if (query.environment !== undefined && query.environment !== environment) throw notFound('user')
      return { data: present(await identities.getByPhone(developerId, phone.phone, environment)) }
    },
    {
      params: object({
        phoneNumber: Type.String({
          description: 'Phone number in E.164 format, URL-encoded: %2B14155550100.',
        }),
      }),
      query: object({
        environment: Type.Optional({
          ...oneOf(environments),
          description:
            'Only a user of this environment. Without it, an API key finds users of its own environment, and a developer those of live, or else of test.',
        }),
      }),
      response: { 200: data(identity), ...consoleErrors },
      detail: {
        tags,
        security: [{ console: [] }, { apiKey: [] }],
        operationId: 'getUser',
        summary: 'Get the virtual phone identity of a phone number',
        description:
          'Looks up whether a phone number was verified by any of your applications, with a bearer token or with an API key alone. Any spelling of the number is accepted.',
      },
    },
  )

  return new Elysia({ prefix: '/v1/users' }).use(list).use(get)
}
