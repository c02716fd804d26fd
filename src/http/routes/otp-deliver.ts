import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import { relayOutcomes } from '../../domain/model/relayed-message.ts'
import { channels, type MessageChannel } from '../../shared/otp-values.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import { relayedCodePattern } from '../../domain/otp/relay-once.ts'
import type { OtpRelay } from '../../domain/otp/relay.ts'
import { sendFields } from '../field-schemas.ts'
import type { ReadIdempotency } from '../idempotency.ts'
import { jsonBody } from '../json-body.ts'
import { deferRateHeaders, setResultHeaders } from '../rate-headers.ts'
import { requireApplication } from '../require-application.ts'
import { country, data, idempotencyKey, idParams, object, oneOf } from '../schemas.ts'
import { detail, phone } from './otp-operations.ts'

/** The routes of codes of other systems, below `/v1/otp`. */
export function otpDeliverRoute(services: {
  appAuth: AppAuth
  otp: Pick<OtpService, 'peekRate'>
  relay: OtpRelay
  readIdempotency: ReadIdempotency
}) {
  const { otp, relay } = services
  return new Elysia()
    .use(jsonBody)
    .use(requireApplication(services.appAuth))
    .derive(({ application, request, path }) => {
      if (path === '/v1/otp/deliver') deferRateHeaders(request, () => otp.peekRate(application, 'send'))
      return {}
    })
    .post(
      '/deliver',
      async ({ application, body, headers, request, set }) => {
        const scope = services.readIdempotency(headers, application.id, 'POST /v1/otp/deliver', body)
        const { replayed, rate, ...relayed } = await relay.deliver(application, body, scope)
        await setResultHeaders(request, set.headers, { replayed, rate })
        // No message is silent.
        return { data: { ...relayed, channel: relayed.channel as MessageChannel } }
      },
      {
        body: object({
          phone,
          country,
          code: Type.String({
            pattern: relayedCodePattern,
            errorText: 'Expected 4 to 10 digits and letters from A to Z',
            description: 'Made and checked by you. It is never stored.',
          }),
          channel: Type.Optional(oneOf(channels)),
          locale: Type.Optional(sendFields.locale),
          clientIp: Type.Optional(sendFields.clientIp),
        }),
        response: {
          200: data(
            object(
              {
                id: Type.String({
                  description: 'Id of the message, which its log entries and webhooks name.',
                }),
                phone: Type.String({ description: 'Phone number in E.164 format.' }),
                channel: oneOf(channels),
                status: {
                  ...oneOf(['sent', 'unknown']),
                  description:
                    '`sent`: a provider accepted the message. `unknown`: it may have it, for example after a timeout.',
                },
              },
              'DeliveredCode',
            ),
          ),
        },
        detail: {
          ...detail,
          parameters: [idempotencyKey],
          operationId: 'deliverCode',
          summary: 'Deliver a code of your own',
          description:
            'For systems that make and check codes themselves, such as supabase/auth and Ory Kratos. The routes are tried in turn for up to 4 seconds; there is no retry afterwards, no OTP request and no user. The same code for the same phone within 60 seconds is answered again and not sent again. Counts as a send for the limits. Of the guard, the lists and the daily cap apply; as otpd does not see whether a code is verified, a country takes 300 messages in 24 hours that `reportDeliveredCode` does not name as verified, or three times the most of a day of the last 14. The text names the `otpTtlSeconds` of the application as the lifetime of the code. Test applications and virtual numbers send nothing. If the database fails after a provider took the message, the answer is 503 although your user may get the code: an equal call within 10 seconds is refused with `IDEMPOTENCY_IN_PROGRESS`, a later one sends the same code once more, at the price of a second message.',
        },
      },
    )
    .post(
      '/deliver/:id/outcome',
      async ({ application, params, body }) => ({
        data: await relay.reportOutcome(application, params.id, body.outcome),
      }),
      {
        params: idParams,
        body: object({
          outcome: oneOf(relayOutcomes),
        }),
        response: {
          200: data(
            object(
              {
                id: Type.String({ description: 'Id of the message.' }),
                phone: Type.String({ description: 'Phone number in E.164 format.' }),
                outcome: oneOf(relayOutcomes),
              },
              'ReportedOutcome',
            ),
          ),
        },
        detail: {
          ...detail,
          operationId: 'reportDeliveredCode',
          summary: 'Report whether a code of your own was entered',
          description:
            'Tells the guard, within 24 hours of `POST /v1/otp/deliver`, whether your user entered the code. `verified` counts as a verification: the message is no longer an unverified one, and the phone becomes a user, as evidence for its country, prefix and network, and passes all allowances for 180 days. The same outcome again changes nothing. `failed` may become `verified`, because a user who mistypes a code may enter it again; `verified` is final. Does not count for the limits.',
        },
      },
    )
}
