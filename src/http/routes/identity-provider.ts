import { Type, type TObject } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { ServiceError } from '../../domain/model/errors.ts'
import type { IdentityProvider } from '../../domain/accounts/identity-provider.ts'
import type { ReadClient } from '../client.ts'
import { toOAuthResult, readForm } from '../oauth.ts'
import { errorBody, errorDetails, object } from '../schemas.ts'

const tokens = object(
  {
    id_token: Type.String(),
    refresh_token: Type.String(),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Integer({ description: 'Lifetime of the ID token in seconds.' }),
    refresh_token_expires_in: Type.Integer({
      description:
        'Seconds until the session ends if it is not used: 30 days after its last renewal, 90 days after the login at most.',
    }),
  },
  'Tokens',
)

const oauthError = object(
  {
    error: Type.String({
      description:
        'Error code of RFC 6749 §5.2 or RFC 7009 §2.2.1, or `mfa_required` (send `totp`), `rate_limited` or `temporarily_unavailable`.',
    }),
    error_description: Type.String(),
    reason: Type.Optional(Type.String()),
    details: errorDetails,
  },
  'OAuthError',
)

/** Errors raised before the handler runs have the API's own error body. */
const serviceOrOAuthError = Type.Union([oauthError, errorBody], { title: 'TokenEndpointError' })

const oauthErrors = {
  400: serviceOrOAuthError,
  413: serviceOrOAuthError,
  415: oauthError,
  429: oauthError,
  503: oauthError,
}

const stringArray = Type.Array(Type.String())

/** Public elliptic-curve key (RFC 7517); a private one would have `d`. */
const publicKey = object(
  {
    kty: Type.String(),
    crv: Type.String(),
    x: Type.String(),
    y: Type.String(),
    kid: Type.String(),
    alg: Type.String(),
    use: Type.Literal('sig'),
  },
  'PublicKey',
)

const metadata = object(
  {
    issuer: Type.String(),
    token_endpoint: Type.String(),
    revocation_endpoint: Type.String(),
    jwks_uri: Type.String(),
    grant_types_supported: stringArray,
    response_types_supported: stringArray,
    subject_types_supported: stringArray,
    id_token_signing_alg_values_supported: stringArray,
    token_endpoint_auth_methods_supported: stringArray,
    claims_supported: stringArray,
  },
  'ProviderMetadata',
)

// Additional properties are allowed: unknown parameters are ignored (RFC 6749 §3.2).
const tokenRequest = Type.Object(
  {
    grant_type: Type.Union([
      Type.Literal('password'),
      Type.Literal('refresh_token'),
      Type.Literal('urn:otpd:setup-token'),
    ]),
    username: Type.Optional(Type.String({ description: 'Email address of the account.' })),
    password: Type.Optional(Type.String()),
    totp: Type.Optional(
      Type.String({ description: 'Code of the authenticator app, or a recovery code, if TOTP is enabled.' }),
    ),
    refresh_token: Type.Optional(Type.String()),
    setup_token: Type.Optional(Type.String()),
    email: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
  },
  {
    title: 'TokenRequest',
    examples: [{ grant_type: 'password', username: 'ada@example.com', password: 'correct horse battery' }],
  },
)

/**
 * Routes of the built-in identity provider. Requests and responses follow OAuth and OpenID Connect and are not wrapped
 * in `data`.
 *
 * @param getProvider throws NOT_FOUND if an external provider is configured
 */
export function identityProviderRoutes(getProvider: () => IdentityProvider, readClient: ReadClient) {
  const detail = { tags: ['Login'], security: [] }

  return new Elysia()
    .get('/.well-known/openid-configuration', () => getProvider().discovery(), {
      response: { 200: metadata },
      detail: {
        ...detail,
        operationId: 'discoverProvider',
        summary: 'Get the OpenID Connect discovery document',
        description: 'OpenID Connect Discovery 1.0. Not found if the server uses another identity provider.',
      },
    })
    .get('/jwks.json', () => getProvider().publicKeys(), {
      response: {
        200: object({ keys: Type.Array(publicKey) }, 'PublicKeys'),
      },
      detail: {
        ...detail,
        operationId: 'getSigningKeys',
        summary: 'Get the public keys that verify ID tokens',
        description:
          'JSON Web Key Set of the built-in identity provider. Keys that were replaced stay in it until their last token has expired.',
      },
    })
    .post(
      '/token',
      async ({ request, server, set, status }) => {
        const provider = getProvider()
        const client = readClient({ request, server, set })
        const result = await toOAuthResult(set.headers, async () =>
          provider.grant(await readForm(request), client),
        )
        return 'value' in result ? result.value : status(result.failure.status, result.failure.body)
      },
      {
        parse: 'none',
        response: { 200: tokens, ...oauthErrors },
        detail: {
          ...detail,
          operationId: 'requestTokens',
          summary: 'Exchange a password, a refresh token or a setup token for an ID token',
          description:
            'OAuth 2.0 token endpoint (RFC 6749), for forms. With `grant_type=password` send `username` and `password`, and `totp` if the account has a second factor; with `refresh_token` send `refresh_token`; with `urn:otpd:setup-token` send `setup_token`, `email`, `password` and, if you like, `name`. The ID token is valid for 15 minutes.',
          requestBody: formBody(tokenRequest),
        },
      },
    )
    .post(
      '/revoke',
      async ({ request, server, set, status }) => {
        const provider = getProvider()
        const client = readClient({ request, server, set })
        const result = await toOAuthResult(set.headers, async () => {
          const { token } = await readForm(request)
          if (token === undefined) throw new ServiceError('INVALID_ARGUMENT', 'Missing parameter: token.')
          return (await provider.revoke(token, client)) ?? {}
        })
        return 'value' in result ? result.value : status(result.failure.status, result.failure.body)
      },
      {
        parse: 'none',
        response: { 200: object({}, 'Revocation'), ...oauthErrors },
        detail: {
          ...detail,
          operationId: 'revokeToken',
          summary: 'End the session of a refresh token (RFC 7009)',
          description:
            'Ends the session: the refresh token and the ID tokens of its login are refused from then on. An unknown token is no error. An ID token or an API token is refused with `unsupported_token_type`.',
          requestBody: formBody(Type.Object({ token: Type.String() }, { title: 'RevocationRequest' })),
        },
      },
    )
}

/** Describes a form body for OpenAPI. Its type rejects a TObject, whose `additionalProperties` may be undefined. */
const formBody = ({ type, properties, required, title, examples }: TObject) => ({
  required: true,
  content: {
    'application/x-www-form-urlencoded': {
      schema: {
        type,
        properties,
        ...(required && { required }),
        ...(title !== undefined && { title }),
        ...(examples !== undefined && { examples }),
      },
    },
  },
})
