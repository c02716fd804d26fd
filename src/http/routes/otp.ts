import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { ApplicationService } from '../../domain/apps/applications.ts'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { attemptsMax } from '../../domain/model/code.ts'
import { isExpired, otpStatuses, type ListedRequest } from '../../domain/model/request.ts'
import type { GuardStatusService } from '../../domain/guard/status.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { OtpRelay } from '../../domain/otp/relay.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { readPhoneFilter } from '../phone-filter.ts'
import { ownerOf, requireEither } from '../require-application.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { setRateHeaders } from '../rate-headers.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import {
  countryQuery,
  data,
  environmentQuery,
  idParams,
  idQuery,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { logEntry, presentLogEntry } from './logs.ts'
import { otpDeliverRoute } from './otp-deliver.ts'
import { otpSessionRoutes } from './otp-sessions.ts'
import { detail, otpOperationRoutes } from './otp-operations.ts'
import { otpProofRoutes, type IssueTestProof } from './otp-proofs.ts'
import { environments, failureReasons } from '../../shared/otp-values.ts'

const otpRequest = object(
  {
    id: Type.String(),
    requestId: Type.String({ description: 'The same as id.' }),
    appId: Type.String(),
    environment: oneOf(environments),
    phone: Type.String(),
    country: nullable(Type.String()),
    status: oneOf(otpStatuses),
    failureReason: nullable(oneOf(failureReasons)),
    channel: Type.String(),
    provider: nullable(Type.String()),
    deliveryStatus: nullable(Type.String()),
    template: nullable(
      Type.String({
        description:
          'Template that the request was sent with; null for the built-in text, and after personal data was removed.',
      }),
    ),
    attempts: Type.Integer(),
    maxAttempts: Type.Integer(),
    resends: Type.Integer(),
    metadata: nullable(Type.Record(Type.String(), Type.String())),
    createdAt: timestamp,
    expiresAt: timestamp,
    verifiedAt: nullable(timestamp),
    updatedAt: timestamp,
  },
  'OtpRequest',
)

/** All routes below `/v1/otp`. */
export function otpRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  paginate: Paginate
  appAuth: AppAuth
  readIdempotency: ReadIdempotency
  callLimits: CallLimits
  applications: Pick<ApplicationService, 'requireFilter'>
  guardStatus: Pick<GuardStatusService, 'isEnforced'>
  otp: OtpService
  relay: OtpRelay
  testProofs: IssueTestProof | undefined
  clock: Clock
  publicUrl(): string
}) {
  const { otp, clock } = services

  const present = (row: ListedRequest) => ({
    id: row.id,
    requestId: row.id,
    appId: row.appId,
    environment: row.environment,
    phone: row.phone,
    country: row.country,
    status: isExpired(row, clock.now()) ? ('expired' as const) : row.status,
    failureReason: row.failureReason,
    channel: row.channel,
    provider: row.provider,
    deliveryStatus: row.deliveryStatus,
    template: row.template?.name ?? null,
    attempts: row.attempts,
    maxAttempts: attemptsMax,
    resends: row.resends,
    metadata: row.metadata,
    createdAt: formatTime(row.createdAt),
    expiresAt: formatTime(row.expiresAt),
    verifiedAt: formatTimeOrNull(row.verifiedAt),
    updatedAt: formatTime(row.updatedAt),
  })

  const consoleDetail = { tags: ['OTP'], security: [{ console: [] }] }
  const eitherSecurity = [...consoleDetail.security, ...detail.security]

  const consoleRoutes = new Elysia().use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    async ({ developer, path, query }) => {
      const { appId, environment, status } = query
      const phone = readPhoneFilter(query)
      await services.applications.requireFilter(developer, appId)
      const filter = { appId, environment, status }
      return services.paginate(
        { developer, path, query },
        (page) =>
          phone === undefined
            ? otp.list(developer, filter, page)
            : otp.listByPhone(developer, phone, filter, page),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        appId: idQuery('Only requests of this application.'),
        environment: environmentQuery,
        status: Type.Optional({ ...oneOf(otpStatuses), description: 'Only requests in this status.' }),
        phone: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 32,
            description:
              'Only requests of this phone number, in any spelling that a send accepts, such as `%2B14155550100`, or as it is written in `country`. Four or more digits alone are the last digits of a number: numbers are stored encrypted, so each page then searches the next 500 requests. A page may have fewer items than `limit`; follow `nextCursor`.',
          }),
        ),
        country: countryQuery,
      }),
      response: { 200: page(otpRequest) },
      detail: {
        ...consoleDetail,
        operationId: 'listOtpRequests',
        summary: 'List OTP requests, newest first',
        description: 'Lists the OTP requests of all your applications. Codes are never part of it.',
      },
    },
  )

  const sharedRoutes = new Elysia()
    .use(requireEither(services, 'full_credentials'))
    .get(
      '/:id',
      async ({ caller, params }) => ({ data: present(await otp.get(ownerOf(caller), params.id)) }),
      {
        params: idParams,
        response: { 200: data(otpRequest) },
        detail: {
          tags: ['OTP'],
          security: eitherSecurity,
          operationId: 'getOtpRequest',
          summary: 'Get an OTP request',
          description:
            'Returns one OTP request, to a developer or to the application that sent it. The code is never part of it.',
        },
      },
    )

  const eventRoutes = new Elysia().use(requireEither(services, 'full_credentials')).get(
    '/:id/events',
    ({ caller, params, path, query, set }) => {
      // A developer's call is charged as any other; reading a whole history costs more than its request.
      if (caller.kind === 'application')
        setRateHeaders(set.headers, services.callLimits.chargeLookup(caller.application))
      // Cursors are sealed for the developer.
      const developer = {
        id: caller.kind === 'developer' ? caller.developer.id : caller.application.developerId,
      }
      return services.paginate(
        { developer, path, query },
        (page) => otp.events(ownerOf(caller), params.id, page),
        presentLogEntry,
      )
    },
    {
      params: idParams,
      query: object(pageQuery),
      response: { 200: page(logEntry) },
      detail: {
        tags: ['OTP'],
        security: eitherSecurity,
        operationId: 'listOtpRequestEvents',
        summary: 'List what happened to an OTP request, oldest first',
        description:
          'Every log entry of the request, and each attempt to deliver its message as `delivery.attempted`. Complete as long as the request is kept, also after the log has deleted the entries. An application may read 60 of them a minute by default, together with its look-ups of users.',
      },
    },
  )

  return new Elysia({ prefix: '/v1/otp' })
    .use(otpOperationRoutes(services))
    .use(otpDeliverRoute(services))
    .use(otpSessionRoutes(services))
    .use(otpProofRoutes(services))
    .use(consoleRoutes)
    .use(sharedRoutes)
    .use(eventRoutes)
}
