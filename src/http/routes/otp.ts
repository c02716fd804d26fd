import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { attemptsMax, isDue, otpStatuses, type OtpRequest } from '../../domain/model/request.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { consoleOrAppAuth } from '../require-application.ts'
import { consoleAuth, type ConsoleAuth } from '../require-developer.ts'
import { pageAnswer, readPage, time, timeOrNull } from '../pages.ts'
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

export function otpRoutes(services: {
  consoleAuth: ConsoleAuth
  appAuth: AppAuth
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
    status: isDue(row, clock.now()) ? ('expired' as const) : row.status,
    failureReason: row.failureReason,
    channel: row.channel,
    provider: row.provider,
    deliveryStatus: row.deliveryStatus,
    attempts: row.attempts,
    maxAttempts: attemptsMax,
    resends: row.resends,
    createdAt: time(row.createdAt),
    expiresAt: time(row.expiresAt),
    verifiedAt: timeOrNull(row.verifiedAt),
    updatedAt: time(row.updatedAt),
  })

  const consoleDetail = { tags: ['OTP'], security: [{ console: [] }] }

  const forDevelopers = new Elysia().use(consoleAuth(services.consoleAuth)).get(
    '/',
    async ({ developer, query }) => {
      const { appId, status } = query
      return pageAnswer(await otp.list(developer, { appId, status }, readPage(query)), present)
    },
    {
      query: object({
        ...pageQuery,
        appId: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
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

  const forBoth = new Elysia().use(consoleOrAppAuth(services, 'all three')).get(
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

  return new Elysia({ prefix: '/v1/otp' }).use(otpOperationRoutes(services)).use(forDevelopers).use(forBoth)
}
