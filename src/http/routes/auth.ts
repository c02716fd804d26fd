import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AccountService } from '../../domain/accounts/accounts.ts'
import type { TotpService } from '../../domain/accounts/totp.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import type { IdentityProvider, LoginSettings } from '../../domain/accounts/identity-provider.ts'
import type { ReadClient } from '../client.ts'
import { requireDeveloper, type AuthenticateDeveloper } from '../require-developer.ts'
import { jsonBody } from '../json-body.ts'
import { data, nullable, object } from '../schemas.ts'
import { identityProviderRoutes } from './identity-provider.ts'

export type AuthServices = {
  authenticateDeveloper: AuthenticateDeveloper
  /** Also admits developers who must still enable the second factor that the server requires. */
  authenticateBeforeTotp: AuthenticateDeveloper
  readClient: ReadClient
  loginSettings: () => Promise<LoginSettings>
  /** Undefined if the operator configured an external OpenID provider; the routes of the built-in one are then 404. */
  builtIn:
    | {
        provider: IdentityProvider
        accounts: Pick<AccountService, 'changePassword' | 'disableTotp'>
        totp: Pick<TotpService, 'propose' | 'confirm'>
      }
    | undefined
}

/** Returns the built-in identity provider. @throws NOT_FOUND (ROUTE_NOT_FOUND) an external one is configured */
export function requireBuiltIn({ builtIn }: Pick<AuthServices, 'builtIn'>) {
  if (builtIn) return builtIn
  throw new ServiceError('NOT_FOUND', 'There is no such route: this server uses another identity provider.', {
    reason: 'ROUTE_NOT_FOUND',
  })
}

const loginSettingsSchema = object(
  {
    kind: Type.Union([Type.Literal('built_in'), Type.Literal('oidc')]),
    issuer: Type.String(),
    clientId: Type.String(),
    tokenEndpoint: nullable(
      Type.String({ description: 'Null: use the one in the discovery document of the issuer.' }),
    ),
    revocationEndpoint: nullable(Type.String()),
    setupTokenAwaited: Type.Boolean({
      description: 'No account exists yet: a setup token creates the first one.',
    }),
  },
  'LoginSettings',
)

/** Routes for login settings, the built-in identity provider and passwords. */
export function authRoutes(services: AuthServices) {
  const { readClient } = services

  return new Elysia({ prefix: '/v1/auth' })
    .get('/config', async () => ({ data: await services.loginSettings() }), {
      response: { 200: data(loginSettingsSchema) },
      detail: {
        tags: ['Login'],
        security: [],
        operationId: 'getLoginSettings',
        summary: 'Get the settings that a command-line client needs to log in',
        description:
          'Tells clients which identity provider issues the ID tokens of this server, and how to log in there.',
      },
    })
    .use(identityProviderRoutes(() => requireBuiltIn(services).provider, readClient))
    .use(
      new Elysia()
        .use(jsonBody)
        .use(requireDeveloper(services.authenticateBeforeTotp))
        .post(
          '/password',
          async ({ developer, body, request, server, set }) => {
            const { network } = readClient({ request, server, set })
            await requireBuiltIn(services).accounts.changePassword(
              developer,
              body.currentPassword,
              body.newPassword,
              network,
            )
            return { data: { changed: true } }
          },
          {
            body: object({ currentPassword: Type.String(), newPassword: Type.String() }),
            response: {
              200: data(object({ changed: Type.Boolean() }, 'PasswordChange')),
            },
            detail: {
              tags: ['Login'],
              security: [{ console: [] }],
              operationId: 'changePassword',
              summary: 'Change the password and end every session',
              description:
                'Changes the password of your account at the built-in identity provider. Wrong current passwords count as failed logins. All sessions end, also the one that made this call: log in again.',
            },
          },
        ),
    )
}
