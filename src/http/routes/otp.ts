import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { attemptsMax } from '../../domain/model/code.ts'
import { isExpired, otpStatuses, type OtpRequest } from '../../domain/model/request.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { requireEither } from '../require-application.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { type Paginate, formatTime, formatTimeOrNull } from '../pagination.ts'
import {
  consoleErrors,
  data,
  idParams,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { otpOperationRoutes } from './otp-operations.ts'

const otpRequest = object(
  {
    id: Type.String(),
    requestId: Type.String({ description: 'The same as id.' }),
    appId: Type.String(),
    environment: oneOf(['live', 'test']),
    phone: Type.String(),
    country: nullable(Type.String()),
    status: oneOf(otpStatuses),
    failureReason: nullable(oneOf(['max_attempts', 'delivery_failed', 'blocked'])),
    channel: Type.String(),
    provider: nullable(Type.String()),
    deliveryStatus: nullable(Type.String()),
    attempts: Type.Integer(),
    maxAttempts: Type.Integer(),
    resends: Type.Integer(),
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
  otp: OtpService
  clock: Clock
}) {
  const { otp, clock } = services

  const present = (row: OtpRequest) => ({
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
    attempts: row.attempts,
    maxAttempts: attemptsMax,
    resends: row.resends,
    createdAt: formatTime(row.createdAt),
    expiresAt: formatTime(row.expiresAt),
    verifiedAt: formatTimeOrNull(row.verifiedAt),
    updatedAt: formatTime(row.updatedAt),
  })

  const consoleDetail = { tags: ['OTP'], security: [{ console: [] }] }

  const consoleRoutes = new Elysia().use(requireDeveloper(services.authenticateDeveloper)).get(
    '/',
    ({ developer, path, query }) => {
      const { appId, status } = query
      return services.paginate(
        { developer, path, query },
        (page) => otp.list(developer, { appId, status }, page),
        present,
      )
    },
    {
      query: object({
        ...pageQuery,
        appId: Type.Optional(
          Type.String({ minLength: 1, maxLength: 64, description: 'Only requests of this application.' }),
        ),
        status: Type.Optional(oneOf(otpStatuses)),
      }),
      response: { 200: page(otpRequest), ...consoleErrors },
      detail: {
        ...consoleDetail,
        operationId: 'listOtpRequests',
        summary: 'List OTP requests, newest first',
      },
    },
  )

  const sharedRoutes = new Elysia().use(requireEither(services, 'full_credentials')).get(
    '/:id',
    async ({ caller, params }) => {
      const owner =
        caller.kind === 'developer' ? { developerId: caller.developer.id } : { appId: caller.application.id }
      return { data: present(await otp.get(owner, params.id)) }
    },
    {
      params: idParams,
      response: { 200: data(otpRequest), ...consoleErrors },
      detail: {
        tags: ['OTP'],
        security: [...consoleDetail.security, { clientId: [], clientSecret: [], apiKey: [] }],
        operationId: 'getOtpRequest',
        summary: 'Get an OTP request',
      },
    },
  )

  return new Elysia({ prefix: '/v1/otp' })
    .use(otpOperationRoutes(services))
    .use(consoleRoutes)
    .use(sharedRoutes)
}
