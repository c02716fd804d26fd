import { SignJWT } from 'jose'
import type { AccountService } from '../domain/accounts/accounts.ts'
import type { Client } from '../domain/model/audit.ts'
import { builtInIssuer } from '../domain/accounts/developers.ts'
import type { Developer } from '../domain/model/developer.ts'
import type {
  GrantForm,
  TokenErrorResponse,
  IdentityProvider,
  TokenResponse,
} from '../domain/accounts/identity-provider.ts'
import type { Clock } from '../domain/model/clock.ts'
import { hasApiTokenFormat } from '../domain/model/api-token.ts'
import type { IssuedRefreshToken, RefreshTokens } from '../domain/accounts/refresh-tokens.ts'
import { createIdTokenVerifier, type TokenLifetime, type VerifyLogin } from './id-token.ts'
import { createKeySource } from './jwks.ts'
import { signingAlgorithm, type SigningKeys } from './signing-keys.ts'
import { dayMs, minuteMs } from '../shared/durations.ts'

/** The one client of the built-in provider, and the audience of its tokens. */
export const builtInClientId = 'otpd'

export const idTokenSeconds = 15 * 60
const setupTokenGrant = 'urn:otpd:setup-token'

/**
 * Creates a function that signs ID tokens of the built-in provider, valid for 15 minutes.
 *
 * @param sessionId the session that the token ends with; undefined for a token of the operator
 */
export function createIdTokenSigner(needs: {
  issuerUrl: () => string
  signingKeys: Pick<SigningKeys, 'current'>
  clock: Clock
}) {
  const { issuerUrl, signingKeys, clock } = needs
  return async (developer: Developer, sessionId?: string): Promise<string> => {
    const { kid, privateKey } = await signingKeys.current()
    // Not before `tokensValidFrom`, which is up to a second ahead, or more if another node's clock is ahead of ours.
    const nowSeconds = Math.floor(Math.max(clock.now(), developer.tokensValidFrom) / 1000)
    const claims = {
      iss: issuerUrl(),
      sub: developer.id,
      aud: builtInClientId,
      iat: nowSeconds,
      exp: nowSeconds + idTokenSeconds,
      email: developer.email,
      // otpd sends no e-mail, so it cannot verify the address.
      email_verified: false,
      ...(developer.name !== null && { name: developer.name }),
      ...(sessionId !== undefined && { sid: sessionId }),
    }
    const header = { alg: signingAlgorithm, typ: 'JWT', kid }
    return new SignJWT(claims).setProtectedHeader(header).sign(privateKey)
  }
}

/**
 * The built-in identity provider, used if no external one is configured. It is deliberately small: no browser
 * login, no consent, a single client. For more, configure an external OpenID provider.
 *
 * @param needs.issuerUrl `{public url}/v1/auth`; called each time, because the port may be known only once
 *   the server listens. Accounts do not depend on it.
 */
export function createBuiltInIssuer(needs: {
  issuerUrl: () => string
  accounts: AccountService
  refreshTokens: RefreshTokens
  signingKeys: SigningKeys
  clock: Clock
}): IdentityProvider {
  const { issuerUrl, accounts, refreshTokens, signingKeys, clock } = needs
  const sign = createIdTokenSigner(needs)

  const tokenResponse = async (
    developer: Developer,
    { refreshToken, expiresAt, sessionId }: IssuedRefreshToken,
  ): Promise<TokenResponse> => ({
    id_token: await sign(developer, sessionId),
    refresh_token: refreshToken,
    token_type: 'Bearer',
    expires_in: idTokenSeconds,
    refresh_token_expires_in: Math.max(0, Math.floor((expiresAt - clock.now()) / 1000)),
  })
  const startSession = async (developer: Developer, { origin }: Client, method: string) => {
    const issued = await refreshTokens.issue({ ...developer, origin }, method)
    return issued
      ? tokenResponse(developer, issued)
      : grantError('invalid_grant', 'The account was changed during the login. Log in again.')
  }

  const grants: Record<
    string,
    (form: GrantForm, client: Client) => Promise<TokenResponse | TokenErrorResponse>
  > = {
    async password({ username, password, totp }, client) {
      if (!username || !password) return missingParameter('username and password')
      const login = await accounts.authenticate(username, password, client, totp)
      if (login === 'mfa_required')
        return grantError('mfa_required', 'This login needs a code too: send totp.')
      if (login) return startSession(login.developer, client, login.method)
      const wrong =
        totp === undefined
          ? 'The e-mail address or the password is wrong.'
          : 'The e-mail address, the password or the code is wrong, or the code was used. Try the next code, or a recovery code.'
      return grantError('invalid_grant', wrong)
    },

    async refresh_token({ refresh_token: token }, { origin }) {
      if (!token) return missingParameter('refresh_token')
      const rotated = await refreshTokens.rotate(token, origin)
      return rotated
        ? tokenResponse(rotated.developer, rotated)
        : grantError('invalid_grant', 'The session has ended. Log in again.')
    },

    async [setupTokenGrant]({ setup_token: token, email, password, name }, client) {
      if (!token || !email || !password) return missingParameter('setup_token, email and password')
      const developer = await accounts.createWithSetupToken(token, { email, password, name }, client)
      return developer
        ? startSession(developer, client, 'setup_token')
        : grantError('invalid_grant', 'The setup token is unknown, used or expired.')
    },
  }

  return {
    async grant(form, client) {
      const { grant_type: type, client_id: clientId } = form
      if (clientId !== undefined && clientId !== builtInClientId)
        return grantError('invalid_client', `Unknown client. Send ${builtInClientId} as client_id, or none.`)
      if (type === undefined) return missingParameter('grant_type')
      const grant = Object.hasOwn(grants, type) ? grants[type] : undefined
      if (grant) return grant(form, client)
      const known = Object.keys(grants).join(', ')
      return grantError('unsupported_grant_type', `Unknown grant_type. Use one of ${known}.`)
    },

    async revoke(token, { origin }) {
      if (isJwt(token))
        return grantError(
          'unsupported_token_type',
          'This is not a refresh token. Send the refresh token of the same login, which ends its ID tokens, too.',
        )
      if (hasApiTokenFormat(token))
        return grantError('unsupported_token_type', 'This is an API token. Use DELETE /v1/tokens/{id}.')
      await refreshTokens.revoke(token, origin)
      return undefined
    },

    publicKeys: signingKeys.publicKeySet,

    discovery: () => ({
      issuer: issuerUrl(),
      token_endpoint: `${issuerUrl()}/token`,
      revocation_endpoint: `${issuerUrl()}/revoke`,
      jwks_uri: `${issuerUrl()}/jwks.json`,
      grant_types_supported: Object.keys(grants),
      response_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [signingAlgorithm],
      token_endpoint_auth_methods_supported: ['none'],
      claims_supported: ['iss', 'sub', 'aud', 'iat', 'exp', 'email', 'email_verified', 'name'],
    }),
  }
}

/** No cooldown: keys come from the local database, so an unknown key id costs one read. */
const localKeyLimits = { refreshMs: minuteMs, cooldownMs: 0, loadsMax: 1, staleMs: dayMs }

/**
 * Verifies the built-in provider's tokens with the same code as external ones, with keys from the database.
 * It returns the fixed issuer under which accounts are stored, independent of the server's current URL.
 */
export function createBuiltInVerifier(needs: {
  issuerUrl: () => string
  signingKeys: SigningKeys
  clock: Clock
  lifetime: TokenLifetime
}): { verify: VerifyLogin } {
  const { issuerUrl, signingKeys, clock, lifetime } = needs
  const keys = createKeySource({
    load: signingKeys.publicKeySet,
    clock,
    limits: localKeyLimits,
    version: signingKeys.version,
  })
  return createIdTokenVerifier({
    issuer: issuerUrl,
    accountIssuer: builtInIssuer,
    audiences: [builtInClientId],
    keys,
    clock,
    lifetime,
  })
}

const grantError = (error: TokenErrorResponse['error'], description: string): TokenErrorResponse => ({
  error,
  error_description: description,
})

const missingParameter = (names: string) => grantError('invalid_request', `Missing: ${names}.`)

/** Recognizes an ID token, also an expired or foreign one: three parts, the first a JSON object in base64url. */
const isJwt = (token: string) => token.startsWith('eyJ') && token.split('.').length === 3
