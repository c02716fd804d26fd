import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import { invalidPhone, parsePhone } from '../../domain/model/phone.ts'
import { proofTypes } from '../../domain/model/proof.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import { sendFields } from '../field-schemas.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime } from '../pagination.ts'
import { deferRateHeaders, setResultHeaders } from '../rate-headers.ts'
import { requireApplication } from '../require-application.ts'
import { country, data, idempotencyKey, object, oneOf } from '../schemas.ts'
import { detail, deviceId, phone, verifiedOtp } from './otp-operations.ts'

/** Issues test proofs, in development mode. */
export type IssueTestProof = {
  issue(claims: { phone: string; nonce?: string | undefined }): Promise<string>
}

const nonce = Type.String({
  minLength: 1,
  maxLength: 500,
  errorText: 'Expected a nonce of up to 500 characters',
})

const notInDevelopmentMode = () =>
  new ServiceError(
    'NOT_FOUND',
    'Only a server in development mode issues test tokens. Start one with: otpd serve --dev',
    { reason: 'ROUTE_NOT_FOUND' },
  )

/** Routes for proofs, which take the place of codes. */
export function otpProofRoutes(services: {
  appAuth: AppAuth
  otp: OtpService
  readIdempotency: ReadIdempotency
  testProofs: IssueTestProof | undefined
}) {
  const { otp, testProofs } = services

  return new Elysia()
    .use(jsonBody)
    .use(requireApplication(services.appAuth))
    .post(
      '/proofs',
      async ({ application, body, headers, request, set }) => {
        deferRateHeaders(request, () => otp.peekRate(application, 'verify'))
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/proofs', body)
        const { requestId, phone, verifiedAt, replayed, rate } = await otp.prove(application, body, scope)
        await setResultHeaders(request, set.headers, { replayed, rate })
        set.status = 201
        return { data: { requestId, status: 'verified' as const, phone, verifiedAt: formatTime(verifiedAt) } }
      },
      {
        body: object({
          type: { ...oneOf(proofTypes), description: 'Firebase Phone Number Verification.' },
          token: Type.String({
            minLength: 1,
            maxLength: 8192,
            errorText: 'Expected a token of up to 8192 characters',
            description: 'The token that the app got. It counts once.',
          }),
          nonce: Type.Optional({
            ...nonce,
            description: 'The nonce that you gave to the app. A token with another one is refused.',
          }),
          phone: Type.Optional({
            ...phone,
            description: 'The phone number that you expect. A token of another one is refused.',
          }),
          country,
          metadata: Type.Optional(sendFields.metadata),
          clientIp: Type.Optional(sendFields.clientIp),
          deviceId: Type.Optional(deviceId),
        }),
        response: { 201: data(verifiedOtp) },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'proveOtp',
          summary: 'Verify a phone by a proof instead of a code',
          description:
            'Makes a verified request of a token of Firebase Phone Number Verification, which asks the carrier of the SIM card: no message is sent. The request has the channel `silent`, and counts, events and identity as one whose code was entered. The operator names the accepted projects in `[proofs.firebase]`. Counts as a verification.',
        },
      },
    )
    .post(
      '/proofs/test',
      async ({ body }) => {
        if (testProofs === undefined) throw notInDevelopmentMode()
        const { phone: number, isVirtual } = parsePhone(body.phone)
        // No SIM card has such a number, so that its proof is refused.
        if (isVirtual) throw invalidPhone()
        return { data: { token: await testProofs.issue({ ...body, phone: number }) } }
      },
      {
        body: object({ phone, nonce: Type.Optional(nonce) }),
        detail: { hide: true },
      },
    )
}
