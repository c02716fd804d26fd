import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/app-auth.ts'
import { otpTtlSecondsMax, otpTtlSecondsMin } from '../../domain/applications.ts'
import { codePattern } from '../../domain/otp-code.ts'
import type { RatedOperation } from '../../domain/otp-rates.ts'
import { attemptsMax, channels, isDue, otpStatuses, type OtpRequest } from '../../domain/otp-requests.ts'
import type { SendAnswer } from '../../domain/otp-send.ts'
import type { OtpService } from '../../domain/otp.ts'
import type { Clock } from '../../domain/ports.ts'
import { appAuth, consoleOrAppAuth } from '../app-auth.ts'
import { consoleAuth, type ConsoleAuth } from '../console-auth.ts'
import { idempotencyScope, markReplayed } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { pageAnswer, readPage, time, timeOrNull } from '../pages.ts'
import { markRate, offerRate } from '../rate-headers.ts'
import {
  appErrors,
  consoleErrors,
  data,
  idempotencyKey,
  idParams,
  nullable,
  object,
  oneOf,
  page,
  pageQuery,
  timestamp,
} from '../schemas.ts'

const requestId = Type.String({ minLength: 1, maxLength: 64 })
const channel = oneOf(channels)

const sent = object(
  {
    requestId: Type.String(),
    phone: Type.String({ description: 'E.164.' }),
    status: Type.Literal('pending'),
    expiresAt: timestamp,
    code: Type.Optional(
      Type.String({ description: 'Only in test applications, whose messages are sent to nobody.' }),
    ),
  },
  'SentOtp',
)

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

  const detail = { tags: ['OTP'], security: [{ clientId: [], clientSecret: [], apiKey: [] }] }
  const consoleDetail = { tags: ['OTP'], security: [{ console: [] }] }

  const forApplications = new Elysia()
    .use(jsonBody)
    .use(appAuth(services.appAuth))
    .derive(({ application, request, path }) => {
      const operation = ratedPaths.get(path)
      if (operation) offerRate(request, () => otp.rateOf(application, operation))
      return {}
    })
    .post(
      '/send',
      async ({ application, body, headers, set }) => {
        const scope = idempotencyScope(headers, application.id, 'POST /v1/otp/send', body)
        const answer = await otp.send(application, body, scope)
        markReplayed(set.headers, answer.replayed)
        markRate(set.headers, answer.rate ?? (await otp.rateOf(application, 'send')))
        set.status = 201
        return { data: presentSent(answer) }
      },
      {
        body: object({
          phone: Type.String({ minLength: 1, maxLength: 64, errorText: 'Expected a phone number' }),
          channel: Type.Optional(channel),
          locale: Type.Optional(
            Type.String({
              pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$',
              errorText: 'Expected a language tag, like en or pt-BR',
            }),
          ),
          ttlSeconds: Type.Optional(
            Type.Integer({
              minimum: otpTtlSecondsMin,
              maximum: otpTtlSecondsMax,
              errorText: 'Expected a whole number from 60 to 600',
            }),
          ),
          metadata: Type.Optional(
            Type.Record(
              Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
              Type.String({ maxLength: 500, errorText: 'Expected up to 500 characters' }),
              {
                maxProperties: 10,
                additionalProperties: false,
                errorText: 'Expected at most 10 pairs of text',
              },
            ),
          ),
          clientIp: Type.Optional(
            Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })], {
              errorText: 'Expected an IP address',
            }),
          ),
        }),
        response: { 201: data(sent), ...appErrors },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'sendOtp',
          summary: 'Send a code to a phone',
        },
      },
    )
    .post(
      '/resend',
      async ({ application, body, headers, set }) => {
        const scope = idempotencyScope(headers, application.id, 'POST /v1/otp/resend', body)
        const answer = await otp.resend(application, body, scope)
        markReplayed(set.headers, answer.replayed)
        markRate(set.headers, answer.rate ?? (await otp.rateOf(application, 'send')))
        return { data: presentSent(answer) }
      },
      {
        body: object({ requestId, channel: Type.Optional(channel) }),
        response: { 200: data(sent), ...appErrors },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'resendOtp',
          summary: 'Send the same code once more',
        },
      },
    )
    .post(
      '/verify',
      async ({ application, body, set }) => {
        const { request, rate } = await otp.verify(application, body.requestId, body.code)
        markRate(set.headers, rate)
        return {
          data: {
            requestId: request.id,
            status: 'verified' as const,
            phone: request.phone,
            verifiedAt: time(request.verifiedAt ?? request.updatedAt),
          },
        }
      },
      {
        body: object({
          requestId,
          code: Type.String({ pattern: codePattern, errorText: 'Expected six digits' }),
        }),
        response: {
          200: data(
            object({
              requestId: Type.String(),
              status: Type.Literal('verified'),
              phone: Type.String(),
              verifiedAt: timestamp,
            }),
          ),
          ...appErrors,
        },
        detail: { ...detail, operationId: 'verifyOtp', summary: 'Check a code' },
      },
    )
    .post(
      '/cancel',
      async ({ application, body }) => {
        const request = await otp.cancel(application, body.requestId)
        return { data: { requestId: request.id, status: 'canceled' as const, phone: request.phone } }
      },
      {
        body: object({ requestId }),
        response: {
          200: data(
            object({ requestId: Type.String(), status: Type.Literal('canceled'), phone: Type.String() }),
          ),
          ...appErrors,
        },
        detail: { ...detail, operationId: 'cancelOtp', summary: 'Make a code worthless' },
      },
    )

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
        security: [...consoleDetail.security, ...detail.security],
        operationId: 'getOtpRequest',
        summary: 'Get an OTP request',
      },
    },
  )

  return new Elysia({ prefix: '/v1/otp' }).use(forApplications).use(forDevelopers).use(forBoth)
}

const ratedPaths = new Map<string, RatedOperation>([
  ['/v1/otp/send', 'send'],
  ['/v1/otp/resend', 'send'],
  ['/v1/otp/verify', 'verify'],
])

const presentSent = (answer: SendAnswer) => ({
  requestId: answer.requestId,
  phone: answer.phone,
  status: answer.status,
  expiresAt: time(answer.expiresAt),
  ...(answer.code !== undefined && { code: answer.code }),
})
