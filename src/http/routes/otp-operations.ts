import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { requestSchemas } from '../field-schemas.ts'
import { codePattern } from '../../domain/model/code.ts'
import type { RatedOperation } from '../../domain/otp/rate-limits.ts'
import { channels } from '../../domain/model/request.ts'
import type { SendResult } from '../../domain/otp/complete-send.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import { requireApplication } from '../require-application.ts'
import { setReplayedHeader, type ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime } from '../pagination.ts'
import { setRateHeaders, deferRateHeaders } from '../rate-headers.ts'
import { appErrors, data, idempotencyKey, object, timestamp, oneOf } from '../schemas.ts'

const requestId = Type.String({ minLength: 1, maxLength: 64 })
const channel = oneOf(channels)

const sentOtp = object(
  {
    requestId: Type.String(),
    phone: Type.String({ description: 'Phone number in E.164 format.' }),
    status: Type.Literal('pending'),
    expiresAt: timestamp,
    code: Type.Optional(
      Type.String({
        description: 'The code, for test applications only: their messages go to the inbox and to no phone.',
      }),
    ),
  },
  'SentOtp',
)

const detail = { tags: ['OTP'], security: [{ clientId: [], clientSecret: [], apiKey: [] }] }

/** Routes for applications below `/v1/otp`: send, resend, verify and cancel. */
export function otpOperationRoutes(services: {
  appAuth: AppAuth
  otp: OtpService
  readIdempotency: ReadIdempotency
}) {
  const { otp } = services

  return new Elysia()
    .use(jsonBody)
    .use(requireApplication(services.appAuth))
    .derive(({ application, request, path }) => {
      const operation = rateLimitedPaths.get(path)
      if (operation) deferRateHeaders(request, () => otp.peekRate(application, operation))
      return {}
    })
    .post(
      '/send',
      async ({ application, body, headers, set }) => {
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/send', body)
        const result = await otp.send(application, body, scope)
        setReplayedHeader(set.headers, result.replayed)
        setRateHeaders(set.headers, result.rate ?? (await otp.peekRate(application, 'send')))
        set.status = 201
        return { data: presentSent(result) }
      },
      {
        body: object({
          phone: Type.String({
            minLength: 1,
            maxLength: 64,
            errorText: 'Expected a phone number of up to 64 characters, such as +14155550100',
          }),
          channel: Type.Optional(channel),
          locale: Type.Optional(
            Type.String({
              pattern: applicationFields.defaultLocale.pattern,
              errorText: applicationFields.defaultLocale.errorText,
            }),
          ),
          ttlSeconds: Type.Optional(requestSchemas(applicationFields).otpTtlSeconds),
          metadata: Type.Optional(
            Type.Record(
              Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
              Type.String({ maxLength: 500, errorText: 'Expected up to 500 characters' }),
              {
                maxProperties: 10,
                additionalProperties: false,
                errorText:
                  'Expected at most 10 pairs; keys of up to 40 letters, digits, dots, hyphens and underscores',
              },
            ),
          ),
          clientIp: Type.Optional(
            Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })], {
              errorText: 'Expected an IPv4 or IPv6 address',
              description:
                'IP address of the end user. Codes sent from a network that verified this phone before have limits of their own, which no stranger can use up.',
            }),
          ),
          deviceId: Type.Optional(
            Type.String({
              pattern: '^[\\x21-\\x7e]{1,128}$',
              errorText: 'Expected 1 to 128 visible ASCII characters, without spaces',
              description:
                "Any stable name of the end user's device or browser, such as a random cookie. Works as clientIp does, also when the network changes. Only a keyed hash is stored.",
            }),
          ),
        }),
        response: { 201: data(sentOtp), ...appErrors },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'sendOtp',
          summary: 'Send a code to a phone number',
        },
      },
    )
    .post(
      '/resend',
      async ({ application, body, headers, set }) => {
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/resend', body)
        const result = await otp.resend(application, body, scope)
        setReplayedHeader(set.headers, result.replayed)
        setRateHeaders(set.headers, result.rate ?? (await otp.peekRate(application, 'send')))
        return { data: presentSent(result) }
      },
      {
        body: object({ requestId, channel: Type.Optional(channel) }),
        response: { 200: data(sentOtp), ...appErrors },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'resendOtp',
          summary: 'Resend the same code',
        },
      },
    )
    .post(
      '/verify',
      async ({ application, body, set }) => {
        const { request, rate } = await otp.verify(application, body.requestId, body.code)
        setRateHeaders(set.headers, rate)
        return {
          data: {
            requestId: request.id,
            status: 'verified' as const,
            phone: request.phone,
            verifiedAt: formatTime(request.verifiedAt ?? request.updatedAt),
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
        detail: { ...detail, operationId: 'verifyOtp', summary: 'Verify a code' },
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
        detail: { ...detail, operationId: 'cancelOtp', summary: 'Cancel a pending code' },
      },
    )
}

const rateLimitedPaths = new Map<string, RatedOperation>([
  ['/v1/otp/send', 'send'],
  ['/v1/otp/resend', 'send'],
  ['/v1/otp/verify', 'verify'],
])

const presentSent = (result: SendResult) => ({
  requestId: result.requestId,
  phone: result.phone,
  status: result.status,
  expiresAt: formatTime(result.expiresAt),
  ...(result.code !== undefined && { code: result.code }),
})
