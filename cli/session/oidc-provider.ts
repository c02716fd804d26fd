import type { Configuration } from 'openid-client'
import { CliError, exitCodes } from '../terminal/errors.ts'
import { connectionFailureText } from '../client/http.ts'
import { isRecord, type OidcProvider } from './profile.ts'
import { isLoopback } from './server-choice.ts'
import { formatDuration } from '../terminal/text.ts'
import { expiryFromToken, readClaims, type TokenGrant } from './token-claims.ts'

export type OpenProvider = Awaited<ReturnType<typeof openProvider>>

/**
 * Reads what the provider publishes about itself (OpenID Connect Discovery 1.0). The library is loaded only here, so that no
 * other command waits for it.
 *
 * Throws CliError PROVIDER_UNREACHABLE, or PROVIDER_FAULT where no provider answers there.
 */
export async function openProvider(provider: OidcProvider, timeoutMs: number) {
  const { issuer, clientId } = provider
  const client = await import('openid-client')
  const url = URL.parse(issuer)
  if (url === null) throw providerFault(provider, 'is not an address')
  const execute = isLoopback(url.hostname) ? [client.allowInsecureRequests] : []

  /** Any failure of the provider or on the way to it, as a CliError. */
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
    /** Throws CliError with code `invalid_grant` where the session there is over. */
    async refresh(refreshToken: string, previousIdToken: string): Promise<TokenGrant> {
      const tokenResponse = await withProviderErrors(client.refreshTokenGrant(configuration, refreshToken))
      const tokens = toTokenGrant(tokenResponse, provider)
      // OpenID Connect Core 1.0 §12.2: whoever the session was for, it stays theirs.
      if (readClaims(tokens.idToken).sub !== readClaims(previousIdToken).sub)
        throw providerFault(provider, 'renewed the session for somebody else')
      return tokens
    },
    /** RFC 7009; nothing where the provider offers none. */
    async revoke(refreshToken: string) {
      if (this.metadata.revocation_endpoint === undefined) return
      await withProviderErrors(
        client.tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' }),
      )
    },
  }
}

/** What a token endpoint gave. Not every provider renews ID tokens, and nothing else opens the API. */
export function toTokenGrant(
  { id_token: idToken, refresh_token: refreshToken }: { id_token?: string; refresh_token?: string },
  provider: OidcProvider,
): TokenGrant {
  if (idToken === undefined)
    throw new CliError(exitCodes.notAllowed, 'invalid_grant', `${provider.issuer} gave no ID token.`)
  return { idToken, refreshToken: refreshToken ?? null, expiresAt: expiryFromToken(idToken) }
}

export const providerFault = ({ issuer }: OidcProvider, fault: string, cause?: unknown) =>
  new CliError(exitCodes.bug, 'PROVIDER_FAULT', `${issuer} ${fault}.`, {
    hints: [
      'The server names that provider; its operator sets it with OTPD_OIDC_ISSUER.',
      'With an ID token from elsewhere: otpd login --token-stdin < token',
    ],
    cause,
  })

/** What openid-client throws: an answer with an OAuth error, a fault of the answer, or no answer. */
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
          `This program is the client ${clientId} there (OTPD_OIDC_CLIENT_ID of the server): a public one, without a`,
          'secret, that may come back to http://127.0.0.1/callback on any port, or use the device flow.',
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
  const failure = rootCause(error)
  const errorCode = isRecord(failure) && typeof failure.code === 'string' ? failure.code : ''
  const isTimeout = failure instanceof Error && failure.name === 'TimeoutError'
  if (!isTimeout && errorCode.startsWith('OAUTH_'))
    return providerFault(provider, 'does not answer like an OpenID provider', error)
  const reason = isTimeout
    ? `no answer within ${formatDuration(timeoutMs)}`
    : connectionFailureText(errorCode)
  return new CliError(exitCodes.unreachable, 'PROVIDER_UNREACHABLE', `Cannot reach ${issuer} (${reason}).`, {
    hints: ['Accounts of this server log in there. Try again later, or look at the network and the proxy.'],
    cause: error,
  })
}

/** The library wraps what happened below it. */
function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? rootCause(error.cause) : error
}
