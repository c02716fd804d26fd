import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AppAuth } from '../../domain/apps/authentication.ts'
import type { CallLimits } from '../../domain/limits/call-limits.ts'
import type { Clock } from '../../domain/model/clock.ts'
import { sessionStatus } from '../../domain/model/session.ts'
import type { OtpService } from '../../domain/otp/otp.ts'
import type { SessionView } from '../../domain/otp/sessions.ts'
import { sessionStatuses } from '../../shared/otp-values.ts'
import { sendFields } from '../field-schemas.ts'
import { jsonBody } from '../json-body.ts'
import { formatTime, formatTimeOrNull } from '../pagination.ts'
import { setRateHeaders } from '../rate-headers.ts'
import { ownerOf, requireApplication, requireEither } from '../require-application.ts'
import type { AuthenticateDeveloper } from '../require-developer.ts'
import { country, data, idParams, nullable, object, oneOf, text, timestamp } from '../schemas.ts'
import { detail, phone } from './otp-operations.ts'
import { sessionTemplateFields } from './template-fields.ts'

const createdSession = object(
  {
    id: Type.String({ description: 'Id of the session. Keep it, for example in your own session.' }),
    url: Type.String({
      description: 'Link of the page, for this end user alone. It is shown only here.',
    }),
    expiresAt: { ...timestamp, description: 'Time after which the link no longer works: 15 minutes.' },
  },
  'CreatedSession',
)

const session = object(
  {
    id: Type.String(),
    appId: Type.String(),
    status: {
      ...oneOf(sessionStatuses),
      description:
        '`created`: nothing was sent. `sent`: a code is on its way. `verified`: the phone is verified. `canceled`: the user went back. `expired`: the link no longer works.',
    },
    phone: nullable(Type.String({ description: 'The phone that was verified, in E.164; null before.' })),
    requestId: nullable(
      Type.String({ description: 'Newest OTP request of the session; null before the first.' }),
    ),
    state: nullable(Type.String({ description: 'The `state` that the session was created with.' })),
    template: nullable(
      Type.String({ description: 'Template of its messages; null for the built-in texts.' }),
    ),
    variables: {
      ...nullable(
        object({
          amount: Type.String({ description: 'Amount of the payment, as it was given.' }),
          payee: Type.String({ description: 'Name of the payee, as it was given.' }),
        }),
      ),
      description: 'Amount and payee of the payment that the user confirms; null without one.',
    },
    createdAt: timestamp,
    expiresAt: { ...timestamp, description: 'Time after which the link no longer works.' },
    verifiedAt: nullable(timestamp),
  },
  'Session',
)

/** Routes of the sessions of the ready page, below `/v1/otp`. */
export function otpSessionRoutes(services: {
  authenticateDeveloper: AuthenticateDeveloper
  appAuth: AppAuth
  callLimits: CallLimits
  otp: Pick<OtpService, 'sessions'>
  clock: Clock
  /** URL under which browsers reach this server. */
  publicUrl(): string
}) {
  const { sessions } = services.otp

  function present({ session: row, request }: SessionView) {
    const status = sessionStatus(row, services.clock.now())
    const verified = status === 'verified' ? request : undefined
    return {
      id: row.id,
      appId: row.appId,
      status,
      phone: verified?.phone ?? null,
      requestId: row.requestId,
      state: row.state,
      template: row.template,
      variables: row.variables,
      createdAt: formatTime(row.createdAt),
      expiresAt: formatTime(row.expiresAt),
      verifiedAt: formatTimeOrNull(verified?.verifiedAt ?? null),
    }
  }

  const createRoute = new Elysia()
    .use(jsonBody)
    .use(requireApplication(services.appAuth))
    .post(
      '/sessions',
      async ({ application, body, set }) => {
        setRateHeaders(set.headers, services.callLimits.chargeSession(application))
        const { session: created, token } = await sessions.create(application, body)
        set.status = 201
        return {
          data: {
            id: created.id,
            url: `${services.publicUrl()}/verify/${token}`,
            expiresAt: formatTime(created.expiresAt),
          },
        }
      },
      {
        body: object({
          returnUrl: Type.String({
            minLength: 1,
            maxLength: 2048,
            errorText: 'Expected a URL of up to 2,048 characters',
            description:
              'Where the browser returns to, as `returnUrl?session=…&state=…`. Its origin must be one of `returnOrigins` of the page.',
          }),
          phone: Type.Optional({
            ...phone,
            description: 'The only phone that the user can verify. Without it, the user enters one.',
          }),
          country,
          locale: Type.Optional({
            ...sendFields.locale,
            description: "Language of the page and of its messages. Without it, that of the user's browser.",
          }),
          state: Type.Optional({
            ...text(512, 'Expected up to 512 characters'),
            description: 'Text of yours that the browser brings back, unchanged.',
          }),
          ...sessionTemplateFields,
        }),
        response: { 201: data(createdSession) },
        detail: {
          ...detail,
          operationId: 'createSession',
          summary: 'Create a link to the ready page',
          description:
            'Creates a session, in which one end user verifies one phone on the ready page of your application, within 15 minutes. Send the browser to `url`. When it is back at `returnUrl`, ask for the session: only its status `verified` counts, not what the browser says.',
        },
      },
    )

  const getRoute = new Elysia().use(requireEither(services, 'full_credentials')).get(
    '/sessions/:id',
    async ({ caller, params }) => {
      const owner = ownerOf(caller)
      return { data: present(await sessions.get(owner, params.id)) }
    },
    {
      params: idParams,
      response: { 200: data(session) },
      detail: {
        ...detail,
        security: [{ console: [] }, ...detail.security],
        operationId: 'getSession',
        summary: 'Get a session of the ready page',
        description:
          'Returns the status of a session, and once it is `verified` the phone. Sessions are kept for a day.',
      },
    },
  )

  return new Elysia().use(createRoute).use(getRoute)
}
