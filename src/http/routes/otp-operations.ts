import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { applicationFields } from '../../shared/application-fields.ts'
import { requestSchemas, sendFields } from '../field-schemas.ts'
import type { GuardStatusService } from '../../domain/guard/status.ts'
import { codePattern } from '../../domain/model/code.ts'
import { invalidField } from '../../domain/model/errors.ts'
import type { RatedCall } from '../../domain/otp/rate-limits.ts'
import { channels } from '../../domain/model/request.ts'
import type { SendResult } from '../../domain/otp/send-result.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { OtpTarget } from '../../domain/otp/target.ts'
import { requireApplication } from '../require-application.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime } from '../pagination.ts'
import { deferRateHeaders, setRateHeaders, setResultHeaders } from '../rate-headers.ts'
import { checkedVariables, templateFields } from './template-fields.ts'
import { country, data, idempotencyKey, object, timestamp, oneOf } from '../schemas.ts'

const requestId = Type.String({ minLength: 1, maxLength: 64 })
const channel = oneOf(channels)
/** A phone number as a call has it. */
export const phone = Type.String({
  minLength: 1,
  maxLength: 64,
  errorText: 'Expected a phone number of up to 64 characters, such as +14155550100',
})

export const deviceId = Type.String({
  pattern: '^[\\x21-\\x7e]{1,128}$',
  errorText: 'Expected 1 to 128 visible ASCII characters, without spaces',
  description:
    "Any stable name of the end user's device or browser, such as a random cookie. Works as clientIp does, also when the network changes. Only a keyed hash is stored.",
})

const challenge = Type.String({
  minLength: 1,
  maxLength: 8192,
  errorText: 'Expected the token of a challenge, up to 8192 characters',
  description:
    'Token of the challenge that the end user passed after `CHALLENGE_REQUIRED`. Each counts once; it opens three times the allowances of the guard.',
})

/** Names a request. `readTarget` requires exactly one of the two. */
const target = {
  requestId: Type.Optional(requestId),
  phone: Type.Optional({
    ...phone,
    description:
      'Used instead of requestId; means the newest request of this application for this phone that is pending.',
  }),
  country,
}

/** @throws INVALID_ARGUMENT unless exactly one is present */
function toTarget(body: {
  requestId?: string
  phone?: string
  country?: string
  clientIp?: string
  deviceId?: string
}): OtpTarget {
  const { requestId, phone, country, clientIp, deviceId } = body
  if (requestId !== undefined && phone === undefined) return { requestId }
  if (phone !== undefined && requestId === undefined) return { phone, country, clientIp, deviceId }
  throw invalidField('body', 'requestId', 'Expected either requestId or phone.')
}

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

export const verifiedOtp = object(
  {
    requestId: Type.String(),
    status: Type.Literal('verified'),
    phone: Type.String(),
    verifiedAt: timestamp,
  },
  'VerifiedOtp',
)

/** Tells callers about the blind spot of the guard: a send that says nothing about its end user. */
const hint =
  "Pass clientIp, your end user's IP address, or deviceId: without them the guard cannot tell customers from attackers."

/** Tag and security of the operations of applications, in the documents. */
export const detail = { tags: ['OTP'], security: [{ clientId: [], clientSecret: [], apiKey: [] }] }

/** Routes for applications below `/v1/otp`: send, resend, verify and cancel. */
export function otpOperationRoutes(services: {
  appAuth: AppAuth
  guardStatus: Pick<GuardStatusService, 'isEnforced'>
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
      async ({ application, body, headers, request, set }) => {
        const { clientIp, deviceId } = body
        const isUnknown = clientIp === undefined && deviceId === undefined
        if (isUnknown && application.environment === 'live' && services.guardStatus.isEnforced())
          set.headers['otpd-hint'] = hint
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/send', body)
        const result = await otp.send(application, body, scope)
        await setResultHeaders(request, set.headers, result)
        set.status = 201
        return { data: presentSent(result) }
      },
      {
        body: object({
          phone,
          country,
          channel: Type.Optional(channel),
          locale: Type.Optional(sendFields.locale),
          ttlSeconds: Type.Optional(requestSchemas(applicationFields).otpTtlSeconds),
          metadata: Type.Optional(sendFields.metadata),
          clientIp: Type.Optional(sendFields.clientIp),
          deviceId: Type.Optional(deviceId),
          challenge: Type.Optional(challenge),
          ...templateFields,
        }),
        response: { 201: data(sentOtp) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'sendOtp',
          summary: 'Send a code to a phone number',
          description:
            'Creates an OTP request and sends a six-digit code to the phone. Messages of test applications go to the inbox and to no phone, and the response has the code. A second send to the same phone makes a new request; the earlier one stays valid. Send an Idempotency-Key, so that a retry sends nothing twice.',
        },
      },
    )
    .post(
      '/resend',
      async ({ application, body, headers, request, set }) => {
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/resend', body)
        const { channel, challenge } = body
        const target = { ...toTarget(body), channel, challenge }
        const result = await otp.resend(application, target, scope)
        await setResultHeaders(request, set.headers, result)
        return { data: presentSent(result) }
      },
      {
        body: object({
          ...target,
          channel: Type.Optional(channel),
          challenge: Type.Optional({ ...challenge, description: 'As in a send.' }),
        }),
        response: { 200: data(sentOtp) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'resendOtp',
          summary: 'Resend the same code',
          description:
            'Sends the same code again: the request, its attempts and its expiry stay as they are. At the earliest 30 seconds after the last message, and at most three times. Counts as a send.',
        },
      },
    )
    .post(
      '/verify',
      async ({ application, body, set }) => {
        const { request, rate } = await otp.verify(application, toTarget(body), body)
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
          ...target,
          clientIp: Type.Optional({
            ...sendFields.clientIp,
            description:
              "End user's IP address. With phone, send it or deviceId: wrong codes of a stranger then count for the limit of strangers, not for that of the owner of the phone. Each takes one of the five attempts of the code all the same.",
          }),
          deviceId: Type.Optional({ ...deviceId, description: 'As in a send. Used with phone.' }),
          code: Type.String({ pattern: codePattern, errorText: 'Expected six digits' }),
          variables: checkedVariables,
        }),
        response: {
          200: data(verifiedOtp),
        },
        detail: {
          ...detail,
          operationId: 'verifyOtp',
          summary: 'Verify a code',
          description:
            'Checks the code that the user entered. Each call with a wrong code counts an attempt; the fifth ends the request. Of several calls with the right code at once exactly one succeeds. Let only this response decide that a phone is verified.',
        },
      },
    )
    .post(
      '/cancel',
      async ({ application, body }) => {
        const request = await otp.cancel(application, toTarget(body))
        return { data: { requestId: request.id, status: 'canceled' as const, phone: request.phone } }
      },
      {
        body: object(target),
        response: {
          200: data(
            object(
              { requestId: Type.String(), status: Type.Literal('canceled'), phone: Type.String() },
              'CanceledOtp',
            ),
          ),
        },
        detail: {
          ...detail,
          operationId: 'cancelOtp',
          summary: 'Cancel a pending code',
          description:
            'Ends a pending request: its code is refused from then on. Call it when the user goes back or enters another number.',
        },
      },
    )
}

const rateLimitedPaths = new Map<string, RatedCall>([
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
