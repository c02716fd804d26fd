import { CliError, exitCodes } from '../terminal/errors.ts'
import type { SendHttp } from './http.ts'
import { foreignResponseError, responseError } from './response-error.ts'
import type { Io } from '../terminal/io.ts'
import { withLock } from './lock.ts'
import { credentialsPath, readStoredLogins, writeStoredLogins, type Login } from './credentials-file.ts'
import { isRecord } from '../../src/shared/json.ts'
import { sourceSentence, type ServerChoice } from './server-choice.ts'
import { shortPath } from '../terminal/text.ts'
import { expiryFromToken, type TokenGrant } from './token-claims.ts'

export type Token = {
  value: string
  expiresAt: string | null
  /** End of its session if it is not renewed before; undefined if it is not known. */
  sessionEndsAt?: string | undefined
  source: string
  email: string | null
}

export const tokenVariable = 'OTPD_TOKEN'

/** Renew a token this long before it expires: the server's clock may run ahead of ours. */
const renewBeforeMs = 30_000

export type Tokens = ReturnType<typeof createTokens>

/** Provides the ID token for one server: from `OTPD_TOKEN`, else from the login stored for exactly this origin. */
export function createTokens(io: Io, server: ServerChoice, send: SendHttp, timeoutMs: number) {
  const path = credentialsPath(io)
  const source = shortPath(path, io.homeDirectory)

  const asToken = (login: Login): Token => ({
    value: login.idToken,
    expiresAt: login.idTokenExpiresAt,
    sessionEndsAt: login.sessionEndsAt,
    source,
    email: login.email,
  })

  const isStale = (login: Login) =>
    login.idTokenExpiresAt !== null && Date.parse(login.idTokenExpiresAt) - renewBeforeMs <= io.now()

  /** Refreshes at the issuer of the session, even if the server is configured with another provider by now. */
  async function refresh({ provider, idToken }: Login, refreshToken: string): Promise<TokenGrant> {
    if (provider === undefined)
      return await requestToken(io, server, send, {
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
      })
    const { openProvider } = await import('./oidc-provider.ts')
    return await (await openProvider(provider, timeoutMs)).refresh(refreshToken, idToken)
  }

  /** Single-flight renewal: the process that gets the lock renews; the others find the new token in the file. */
  async function renew(refused: string | null): Promise<Token> {
    return await withLock(io, `${path}.lock`, async () => {
      const stored = readStoredLogins(path)
      const login = stored.logins[server.origin]
      if (login === undefined) throw notLoggedInError(server, Object.keys(stored.logins))
      if (login.idToken !== refused && !isStale(login)) return asToken(login)
      if (login.refreshToken === null) throw sessionEndedError(server, source)
      const tokens = await refresh(login, login.refreshToken).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        if (error.code === 'invalid_grant') throw sessionEndedError(server, source, error)
        // A server that has switched to an OpenID provider no longer has this route.
        throw error.status === 404 ? sessionEndedError(server, source) : error
      })
      const renewedLogin: Login = {
        ...login,
        idToken: tokens.idToken,
        idTokenExpiresAt: tokens.expiresAt,
        refreshToken: tokens.refreshToken ?? login.refreshToken,
        ...(tokens.sessionEndsAt !== undefined && { sessionEndsAt: tokens.sessionEndsAt }),
      }
      writeStoredLogins(path, { ...stored, logins: { ...stored.logins, [server.origin]: renewedLogin } })
      return asToken(renewedLogin)
    })
  }

  return {
    /**
     * Returns the token, renewed if necessary; null when not logged in.
     *
     * @throws CliError when the session has ended or cannot be renewed
     */
    async current(): Promise<Token | null> {
      if (io.env.OTPD_TOKEN)
        return {
          value: io.env.OTPD_TOKEN,
          expiresAt: expiryFromToken(io.env.OTPD_TOKEN),
          source: tokenVariable,
          email: null,
        }
      const login = readStoredLogins(path).logins[server.origin]
      if (login === undefined) return null
      return isStale(login) ? await renew(null) : asToken(login)
    },
    /** Returns a new token for one that the server just rejected; null if it cannot be renewed. */
    async replace(refused: Token): Promise<Token | null> {
      const login = refused.source === source ? readStoredLogins(path).logins[server.origin] : undefined
      return login?.refreshToken ? await renew(refused.value) : null
    },
    notLoggedInError: () => notLoggedInError(server, Object.keys(readStoredLogins(path).logins)),
  }
}

const remedies: Partial<Record<string, string[]>> = {
  password: ["Forgot the password? On the server's machine: otpd admin reset-password EMAIL"],
  'urn:otpd:setup-token': ["For a new token, on the server's machine: otpd admin setup-token"],
}

/** Says how to cure a refused grant. */
function findRemedies({ grant_type: grantType = '', totp }: Record<string, string>, code: unknown) {
  if (code === 'mfa_required') return ['Pass --totp CODE.']
  if (code !== 'invalid_grant') return []
  const lostDevice = "Lost the device? On the server's machine: otpd admin reset-totp EMAIL"
  return [...(remedies[grantType] ?? []), ...(totp === undefined ? [] : [lostDevice])]
}

/**
 * Calls the token endpoint (RFC 6749 §4.3, §6) with a form.
 *
 * @throws CliError for an error response, or for one that is not a token response
 */
export async function requestToken(
  io: Io,
  server: ServerChoice,
  send: SendHttp,
  form: Record<string, string>,
): Promise<TokenGrant> {
  const response = await send({
    method: 'POST',
    path: '/v1/auth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })
  if (response.status >= 400) {
    const code = isRecord(response.json) ? response.json.error : undefined
    throw responseError(server, response, findRemedies(form, code))
  }
  if (!isRecord(response.json) || typeof response.json.id_token !== 'string')
    throw foreignResponseError(server, response.status)
  const { id_token: idToken, refresh_token: refreshToken, expires_in: expiresIn } = response.json
  const { refresh_token_expires_in: sessionSeconds } = response.json
  const isoTimeIn = (seconds: number) => new Date(io.now() + seconds * 1000).toISOString()
  return {
    idToken,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : null,
    expiresAt: typeof expiresIn === 'number' ? isoTimeIn(expiresIn) : expiryFromToken(idToken),
    // Servers up to 0.2.0 do not say it.
    ...(typeof sessionSeconds === 'number' && { sessionEndsAt: isoTimeIn(sessionSeconds) }),
  }
}

function notLoggedInError(server: ServerChoice, otherOrigins: string[]) {
  const loggedInElsewhere = otherOrigins.filter((origin) => origin !== server.origin)
  const hints = [sourceSentence(server)]
  if (loggedInElsewhere.length > 0)
    hints.push(`You are logged in to ${loggedInElsewhere.join(', ')}: choose one with --server.`)
  hints.push(`Log in with: otpd login --server ${server.url}`)
  return new CliError(exitCodes.notAllowed, 'NOT_LOGGED_IN', `Not logged in to ${server.url}.`, { hints })
}

function sessionEndedError(server: ServerChoice, source: string, cause?: CliError) {
  return new CliError(exitCodes.notAllowed, 'SESSION_ENDED', `The session at ${server.url} has ended.`, {
    hints: [`The token came from ${source}.`, `Log in again with: otpd login --server ${server.url}`],
    cause,
    ...(cause?.body !== undefined && { body: cause.body }),
  })
}
