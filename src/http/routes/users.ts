import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { notFound } from '../../domain/model/errors.ts'
import type { PhoneService } from '../../domain/upkeep/phone-service.ts'
import type { IdentityService } from '../../domain/otp/identities.ts'
import type { Identity } from '../../domain/model/identity.ts'
import { noSuchPhone } from '../../domain/model/typed-phone.ts'
import { jsonBody } from '../json-body.ts'
import { readPhoneFilter } from '../phone-filter.ts'
import { requireEither } from '../require-application.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime } from '../pagination.ts'
import {
  countryQuery,
  data,
  environmentQuery,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'
import { environments } from '../../shared/otp-values.ts'

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

const phoneParams = object({
  phoneNumber: Type.String({
    description:
      'Phone number in E.164 format, URL-encoded: %2B14155550100; with `country` also as it is written there.',
  }),
})

const erasure = object(
  {
    erased: Type.Boolean({ description: 'Always true.' }),
    otpRequests: Type.Integer({ description: 'OTP requests from which the number was erased.' }),
    logEntries: Type.Integer({ description: 'Log entries from which the number was erased.' }),
    users: Type.Integer({ description: 'Users that were deleted: one for each environment.' }),
  },
  'PhoneErasure',
)

const unlocking = object(
  {
    unlocked: Type.Boolean({ description: 'Whether anything was counted for the phone.' }),
    checkBudgets: Type.Integer({ description: 'Limits of wrong codes that were reset.' }),
    admissions: Type.Integer({ description: 'Sends that no longer count for the limit of the phone.' }),
  },
  'PhoneUnlock',
)

/** Routes for virtual phone identities. */
export function userRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  appAuth: AppAuth
  callLimits: CallLimits
  identities: IdentityService
  phones: PhoneService
}) {
  const { identities, phones } = services
  const tags = ['Users']

  const list = new Elysia().use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    ({ developer, path, query }) => {
      const phone = readPhoneFilter(query)
      return services.paginate(
        { developer, path, query },
        (page) =>
          phone === undefined
            ? identities.list(developer, page, query.environment)
            : identities.listByPhone(developer, phone, page, query.environment),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        environment: environmentQuery,
        phone: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 32,
            description:
              'Only users of this phone number, such as `%2B14155550100`, or as it is written in `country`. Four or more digits alone are the last digits of a number: numbers are stored encrypted, so each page then searches the next 1,000 users. A page may have fewer items than `limit`; follow `nextCursor`.',
          }),
        ),
        country: countryQuery,
      }),
      response: { 200: page(identity) },
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
      const application = caller.kind === 'developer' ? undefined : caller.application
      const phone = await identities.readPhone(params.phoneNumber, query.country, application)
      if (!phone) throw noSuchPhone()
      if (caller.kind === 'developer')
        return {
          data: present(await identities.getByPhone(caller.developer.id, phone.phone, query.environment)),
        }
      const { developerId, environment } = caller.application
      if (query.environment !== undefined && query.environment !== environment) throw notFound('user')
      return { data: present(await identities.getByPhone(developerId, phone.phone, environment)) }
    },
    {
      params: phoneParams,
      query: object({
        country: countryQuery,
        environment: Type.Optional({
          ...oneOf(environments),
          description:
            'Only a user of this environment. Without it, an API key finds users of its own environment, and a developer those of live, or else of test.',
        }),
      }),
      response: { 200: data(identity) },
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

  const support = new Elysia()
    .use(requireDeveloper(services.authenticateDeveloper))
    .use(jsonBody)
    .delete(
      '/:phoneNumber',
      async ({ developer, params, query }) => ({
        data: { erased: true, ...(await phones.erase(developer, params.phoneNumber, query.country)) },
      }),
      {
        params: phoneParams,
        query: object({
          country: countryQuery,
          erase: { ...oneOf(['true']), description: 'Must be `true`: an erasure cannot be undone.' },
        }),
        response: { 200: data(erasure) },
        detail: {
          tags,
          security: [{ console: [] }],
          operationId: 'eraseUser',
          summary: 'Erase a phone number from all your records',
          description:
            'Deletes the user with its limits, cancels its codes, and replaces the number, under every spelling, by `erased` in records that stay for the counts, in both environments. Old records that hold only a pseudonym of the number are included. Reads all your records, so it takes longer the more you have, and goes on if you hang up. Recorded in the audit trail, without the number. Backups, providers and webhook receivers keep what they got.',
        },
      },
    )
    .post(
      '/:phoneNumber/unlock',
      async ({ developer, params, query }) => {
        const reset = await phones.unlock(developer, params.phoneNumber, query.country)
        return { data: { unlocked: reset.checkBudgets + reset.admissions > 0, ...reset } }
      },
      {
        params: phoneParams,
        query: object({ country: countryQuery }),
        response: { 200: data(unlocking) },
        detail: {
          tags,
          security: [{ console: [] }],
          operationId: 'unlockUser',
          summary: 'Reset the limits of a phone number',
          description:
            'Forgets the wrong codes and the recent sends of a phone number, under every spelling, in both environments, so that codes can be sent and verified again. Attempts of a code that was sent stay counted. Recorded in the audit trail, without the number.',
        },
      },
    )

  return new Elysia({ prefix: '/v1/users' }).use(list).use(get).use(support)
}
