import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { jsonBody } from '../json-body.ts'
import { requireDeveloper } from '../require-developer.ts'
import { data, object } from '../schemas.ts'
import { requireBuiltIn, type AuthServices } from './auth.ts'

const proposal = object(
  {
    secret: Type.String({ description: 'Base32, to type into an authenticator app.' }),
    uri: Type.String({ description: '`otpauth://` URI of the QR code that an authenticator app scans.' }),
  },
  'ProposedTotp',
)

const confirmation = object(
  {
    enabled: Type.Boolean(),
    recoveryCodes: Type.Array(Type.String(), {
      description: 'Ten codes, which each replace a code of the app once. They are not shown again.',
    }),
  },
  'ConfirmedTotp',
)

/** Exactly one of the two. The framework's documents would show a union of objects as two bodies. */
const proof = Type.Object(
  { password: Type.Optional(Type.String()), code: Type.Optional(Type.String()) },
  {
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
    errorText: 'Expected either the password or a code.',
  },
)

/** Routes for the second factor of a developer with a password: time-based codes (RFC 6238). */
export function totpRoutes(services: AuthServices) {
  const { authenticateBeforeTotp, readClient } = services
  const detail = { tags: ['Developer profile'], security: [{ console: [] }] }

  return new Elysia({ prefix: '/v1/developer/me/totp' })
    .use(jsonBody)
    .use(requireDeveloper(authenticateBeforeTotp))
    .post('', async ({ developer }) => ({ data: await requireBuiltIn(services).totp.propose(developer) }), {
      response: { 200: data(proposal) },
      detail: {
        ...detail,
        operationId: 'proposeTotp',
        summary: 'Get a secret for an authenticator app, to be confirmed with its first code',
        description:
          'Makes a new secret for an authenticator app (RFC 6238). Nothing changes until you confirm it with its first code; another call replaces the secret.',
      },
    })
    .post(
      '/confirm',
      async ({ developer, body }) => {
        const recoveryCodes = await requireBuiltIn(services).totp.confirm(developer, body.code)
        return { data: { enabled: true, recoveryCodes } }
      },
      {
        body: object({ code: Type.String({ description: 'Current code of the authenticator app.' }) }),
        response: { 200: data(confirmation) },
        detail: {
          ...detail,
          operationId: 'confirmTotp',
          summary: 'Enable TOTP with the first code, and get the recovery codes',
          description:
            'Enables the second factor: from then on, logins need a code. Store the recovery codes: each replaces a code once.',
        },
      },
    )
    .delete(
      '',
      async ({ developer, body, request, server, set }) => {
        const { network } = readClient({ request, server, set })
        const { password, code = '' } = body
        const given = password === undefined ? { code } : { password }
        await requireBuiltIn(services).accounts.disableTotp(developer, given, network)
        return { data: { enabled: false } }
      },
      {
        body: proof,
        response: {
          200: data(object({ enabled: Type.Boolean() }, 'TotpState')),
        },
        detail: {
          ...detail,
          operationId: 'disableTotp',
          summary: 'Disable TOTP with the password or a code',
          description:
            'Removes the second factor of your account. Send either the password or a code; wrong ones count as failed logins.',
        },
      },
    )
}
