import type { Configuration } from 'openid-client'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { connectionFailureText } from './http.ts'
import type { OidcProvider } from './credentials-file.ts'
import { isRecord } from '../../src/shared/json.ts'
import { isLoopback } from '../../src/shared/loopback.ts'
import { formatDuration } from '../terminal/text.ts'
import { expiryFromToken, readClaims, type TokenGrant } from './token-claims.ts'

export type OpenProvider = Awaited<ReturnType<typeof openProvider>>

/**
 * Fetches the provider's metadata (OpenID Connect Discovery 1.0). The library is loaded only here, so that other commands
 * do not wait for it.
 *
 * @throws CliError PROVIDER_UNREACHABLE, or PROVIDER_FAULT when the issuer does not respond like a provider
 */
export async function openProvider(provider: OidcProvider, timeoutMs: number) {
  const { issuer, clientId } = provider
  const client = await import('openid-client')
  const url = URL.parse(issuer)
  if (url === null) throw providerFault(provider, 'is not a valid URL')
  const execute = isLoopback(url.hostname) ? [client.allowInsecureRequests] : []

  /** Rethrows any failure of the provider or of the connection to it as a CliError. */
  async function withProviderErrors<T>(request: Promise<T>): Promise<T> {
    try {
      return await request
    } catch (error) {
      throw asProviderError(error, provider, timeoutMs)
    }
  }

  const timeout = timeoutMs / 1000
  const configuration: Configuration = await withProviderErrors(
    client.discovery(url, clientId, undefined, client.None(), { execute, timeout }),
  )

  return {
    ...provider,
    client,
    configuration,
    metadata: configuration.serverMetadata(),
    withProviderErrors,
    /**
     * Renews the session.
     *
     * @throws CliError `invalid_grant` when the session at the provider has ended
     */
    async refresh(refreshToken: string, previousIdToken: string): Promise<TokenGrant> {
      const tokenResponse = await withProviderErrors(client.refreshTokenGrant(configuration, refreshToken))
      const tokens = toTokenGrant(tokenResponse, provider)
      // OpenID Connect Core 1.0 §12.2: the subject must not change on renewal.
      if (readClaims(tokens.idToken).sub !== readClaims(previousIdToken).sub)
        throw providerFault(provider, 'renewed the session for a different user')
      return tokens
    },
    /** Revokes a token (RFC 7009); does nothing if the provider does not support revocation. */
    async revoke(refreshToken: string) {
      if (this.metadata.revocation_endpoint === undefined) return
      await withProviderErrors(
        client.tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' }),
      )
    },
  }
}

/**
 * Converts a token response.
 *
 * @throws CliError `invalid_grant` without an ID token: not every provider renews it, and the API accepts nothing else
 */
export function toTokenGrant(
  { id_token: idToken, refresh_token: refreshToken }: { id_token?: string; refresh_token?: string },
  provider: OidcProvider,
): TokenGrant {
  if (idToken === undefined)
    throw new CliError(exitCodes.notAllowed, 'invalid_grant', `${provider.issuer} returned no ID token.`)
  return { idToken, refreshToken: refreshToken ?? null, expiresAt: expiryFromToken(idToken) }
}

/** Makes the error for a provider that does not behave as required; `fault` follows the issuer in the message. */
export const providerFault = ({ issuer }: OidcProvider, fault: string, cause?: unknown) =>
  new CliError(exitCodes.bug, 'PROVIDER_FAULT', `${issuer} ${fault}.`, {
    hints: [
      "The server's operator chose that provider with OTPD_OIDC_ISSUER.",
      'To use an ID token from elsewhere: otpd login --token-stdin < token',
    ],
    cause,
  })

/** Converts what openid-client throws: an OAuth error response, an invalid response, or no response. */
function asProviderError(error: unknown, provider: OidcProvider, timeoutMs: number): unknown {
  if (error instanceof CliError) return error
  const { issuer, clientId } = provider
  const refusal = isRecord(error) && typeof error.error === 'string' ? error : null
  if (refusal !== null) {
    const code = String(refusal.error)
    const description = typeof refusal.error_description === 'string' ? refusal.error_description : code
    const isClient = /^(invalid_client|unauthorized_client|invalid_scope|invalid_request)$/.test(code)
    const hints = isClient
      ? [
          `Register the client ${clientId} (the server's OTPD_OIDC_CLIENT_ID) there as a public client without a secret,`,
          'with the redirect URI http://127.0.0.1/callback on any port, or with the device flow.',
        ]
      : ['Try again with: otpd login']
    const exitCode = /^(access_denied|invalid_grant|expired_token)$/.test(code)
      ? exitCodes.notAllowed
      : exitCodes.refused
    return new CliError(exitCode, code, `${issuer} refused: ${description}.`.replace(/\.\.$/, '.'), {
      hints,
      cause: error,
    })
  }
  const unavailableStatus = findUnavailableStatus(error)
  if (unavailableStatus !== null)
    return unreachable(`${issuer} is unavailable at the moment (HTTP ${unavailableStatus}).`, error)
  const failure = rootCause(error)
  const errorCode = isRecord(failure) && typeof failure.code === 'string' ? failure.code : ''
  const isTimeout = failure instanceof Error && failure.name === 'TimeoutError'
  if (!isTimeout && errorCode.startsWith('OAUTH_'))
    return providerFault(provider, 'does not respond like an OpenID provider', error)
  const reason = isTimeout
    ? `no response within ${formatDuration(timeoutMs)}`
    : connectionFailureText(errorCode)
  return unreachable(`Cannot reach ${issuer} (${reason}).`, error)
}

const unreachable = (message: string, cause: unknown) =>
  new CliError(exitCodes.unreachable, 'PROVIDER_UNREACHABLE', message, {
    hints: ['Accounts of this server log in there. Try again later, or check the network and the proxy.'],
    cause,
  })

/** Returns the status of a response that says to come back later; the library puts the response into the cause. */
function findUnavailableStatus(error: unknown): number | null {
  const response = isRecord(error) ? error.cause : undefined
  if (!(response instanceof Response)) return null
  return response.status >= 500 || response.status === 429 ? response.status : null
}

/** Returns the innermost cause: the library wraps errors of the layers below. */
function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootCause(error.cause) : error
}
