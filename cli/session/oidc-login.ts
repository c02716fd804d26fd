import { CliError, exitCodes, isRetryable, usageError } from '../terminal/errors.ts'
import { runUnlessInterrupted } from '../terminal/interrupt.ts'
import { listenForCallback } from './oidc-callback.ts'
import { toTokenGrant, openProvider, providerFault, type OpenProvider } from './oidc-provider.ts'
import type { OidcProvider } from './credentials-file.ts'
import type { PromptContext } from '../terminal/prompt.ts'
import { printable, formatRemaining } from '../terminal/text.ts'
import type { TokenGrant } from './token-claims.ts'
import { minuteMs } from '../../src/shared/durations.ts'

export type OidcLoginOptions = { device?: boolean | undefined; callbackPort?: string | undefined }

/** The part of a command's context that a login uses. */
export type LoginContext = PromptContext & { timeoutMs: number }

/** How long a person may take on the provider's pages. */
const loginTimeoutMs = 5 * minuteMs

/**
 * Logs in at the provider: in a browser on this machine (authorization code with PKCE, RFC 8252), or with `device` in
 * a browser anywhere (RFC 8628).
 *
 * @param accept checks the tokens at the server, before the browser shows the outcome
 * @throws CliError of the provider; LOGIN_TIMED_OUT; CANCELED on Ctrl+C; what `accept` throws
 */
export async function logInAtProvider<T>(
  context: LoginContext,
  provider: OidcProvider,
  { device, callbackPort = '0' }: OidcLoginOptions,
  accept: (tokens: TokenGrant) => Promise<T>,
): Promise<T> {
  if (!device && !context.mayAsk)
    throw usageError(
      `Accounts of this server log in at ${provider.issuer} with a browser, and there is no terminal to start it from.`,
      'With a browser on another device: otpd login --device',
      'Without a browser: otpd login --token-stdin < token, or OTPD_TOKEN=…',
    )
  if (!/^\d{1,5}$/.test(callbackPort) || Number(callbackPort) > 65_535)
    throw usageError('--callback-port must be a number from 1 to 65535.')
  const openedProvider = await openProvider(provider, context.timeoutMs)
  return await runUnlessInterrupted(context.io, async (signal) =>
    device
      ? await accept(await logInOnDevice(context, openedProvider, signal))
      : await logInWithBrowser(context, openedProvider, Number(callbackPort), accept),
  )
}

async function logInWithBrowser<T>(
  context: PromptContext,
  provider: OpenProvider,
  port: number,
  accept: (tokens: TokenGrant) => Promise<T>,
): Promise<T> {
  const { client, configuration, metadata, withProviderErrors } = provider
  if (metadata.authorization_endpoint === undefined)
    throw providerFault(provider, 'does not support login in a browser')
  const state = client.randomState()
  const nonce = client.randomNonce()
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const callback = listenForCallback(port, state)
  let isLoggedIn = false
  try {
    const authorizationParams = {
      ...scopeParams(provider),
      redirect_uri: callback.redirectUri,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    }
    // Throws for a URL that is not http or https: the desktop would open a file or start a program just as well.
    const url = await withProviderErrors(
      Promise.try(() => client.buildAuthorizationUrl(configuration, authorizationParams)),
    )
    showPage(context, provider, url.href)
    const callbackUrl = await Promise.race([callback.callbackUrl, context.io.sleep(loginTimeoutMs)])
    if (callbackUrl === undefined)
      throw loginTimedOut(`The login was not completed within ${formatRemaining(loginTimeoutMs)}.`)
    const checks = { pkceCodeVerifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    const tokens = await withProviderErrors(client.authorizationCodeGrant(configuration, callbackUrl, checks))
    const login = await accept(toTokenGrant(tokens, provider))
    isLoggedIn = true
    return login
  } finally {
    await callback.close(isLoggedIn)
  }
}

/** Shows the login page's address, with --quiet too: without it the login cannot continue. */
function showPage({ io, output }: PromptContext, { metadata }: OpenProvider, url: string) {
  const { dim, bold } = output.paintError
  const isOpen = io.openPage?.(url) ?? false
  const introduction = isOpen
    ? 'Opening your browser to log in. If it does not open, visit'
    : 'Open this page to log in'
  const deviceHint = metadata.device_authorization_endpoint
    ? '. To use another device: otpd login --device'
    : ''
  io.writeError(
    `${introduction}:\n\n  ${bold(printable(url))}\n\n${dim(`Waiting (Ctrl+C to quit)${deviceHint}`)}\n`,
  )
}

async function logInOnDevice(
  { io, output }: PromptContext,
  provider: OpenProvider,
  interrupted: AbortSignal,
): Promise<TokenGrant> {
  const { client, configuration, metadata, withProviderErrors } = provider
  if (metadata.device_authorization_endpoint === undefined)
    throw providerFault(provider, 'does not support login on another device; log in without --device')
  const device = await withProviderErrors(
    client.initiateDeviceAuthorization(configuration, scopeParams(provider)),
  )
  const { dim, bold } = output.paintError
  const lifetimeMs = device.expires_in * 1000
  io.writeError(
    [
      `Open   ${bold(printable(device.verification_uri))}   on any device`,
      `Enter  ${bold(printable(device.user_code))}`,
      dim(`Waiting for ${formatRemaining(lifetimeMs)} (Ctrl+C to quit)\n`),
    ].join('\n'),
  )
  const expired = AbortSignal.timeout(lifetimeMs)
  const signal = AbortSignal.any([interrupted, expired])
  /** Polls until the login has ended. RFC 8628 §3.5: less often after no response, as with `slow_down`. */
  const poll = (interval: number): ReturnType<typeof client.pollDeviceAuthorizationGrant> =>
    withProviderErrors(
      client.pollDeviceAuthorizationGrant(configuration, { ...device, interval }, undefined, { signal }),
    ).catch((error: unknown) => {
      if (signal.aborted || !(error instanceof CliError && isRetryable(error))) throw error
      return poll(interval + 5)
    })
  const timeoutError = loginTimedOut('The code expired before it was entered.', 'otpd login --device')
  const tokens = await poll(device.interval ?? 5).catch((error: unknown) => {
    const isLate = expired.aborted || (error instanceof CliError && error.code === 'expired_token')
    throw isLate ? timeoutError : error
  })
  return toTokenGrant(tokens, provider)
}

/**
 * Requests a refresh token (scope `offline_access`) only if the provider supports it, because some reject unknown
 * scopes. That scope requires the user's consent (OpenID Connect Core 1.0 §11).
 */
function scopeParams({ metadata }: OpenProvider): Record<string, string> {
  const supportsOffline = metadata.scopes_supported?.includes('offline_access') === true
  return supportsOffline
    ? { scope: 'openid email profile offline_access', prompt: 'consent' }
    : { scope: 'openid email profile' }
}

const loginTimedOut = (message: string, command = 'otpd login') =>
  new CliError(exitCodes.notAllowed, 'LOGIN_TIMED_OUT', message, { hints: [`Start again with: ${command}`] })
