import { CliError, exitCodes } from '../terminal/errors.ts'
import type { SendHttp } from '../client/http.ts'
import { responseError } from '../client/response-error.ts'
import type { Io } from '../terminal/io.ts'
import { withLock } from './lock.ts'
import { credentialsPath, isRecord, readProfile, writeProfile, type Login } from './profile.ts'
import { sourceSentence, type ServerChoice } from './server-choice.ts'
import { shortPath } from '../terminal/text.ts'
import { expiryFromToken, type TokenGrant } from './token-claims.ts'

export type Token = { value: string; expiresAt: string | null; source: string; email: string | null }

export const tokenVariable = 'OTPD_TOKEN'

/** A token that is about to expire is renewed before it is sent: the server's clock may run ahead of ours. */
const renewBeforeMs = 30_000

export type Tokens = ReturnType<typeof createTokens>

/** The ID token for one server: from `OTPD_TOKEN`, else the login kept for exactly this origin. */
export function createTokens(io: Io, server: ServerChoice, send: SendHttp, timeoutMs: number) {
  const path = credentialsPath(io)
  const source = shortPath(path, io.homeDirectory)

  const asToken = (login: Login): Token => ({
    value: login.idToken,
    expiresAt: login.idTokenExpiresAt,
    source,
    email: login.email,
  })

  const isStale = (login: Login) =>
    login.idTokenExpiresAt !== null && Date.parse(login.idTokenExpiresAt) - renewBeforeMs <= io.now()

  /** At whoever gave it: the provider that was logged in at, whatever the server names by now. */
  async function refresh({ provider, idToken }: Login, refreshToken: string): Promise<TokenGrant> {
    if (provider === undefined)
      return await requestToken(io, server, send, {
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
      })
    const { openProvider } = await import('./oidc-provider.ts')
    return await (await openProvider(provider, timeoutMs)).refresh(refreshToken, idToken)
  }

  /** Whoever gets the lock first asks the server; the others find the new token in the file. */
  async function renew(refused: string | null): Promise<Token> {
    return await withLock(io, `${path}.lock`, async () => {
      const profile = readProfile(path)
      const login = profile.logins[server.origin]
      if (login === undefined) throw notLoggedInError(server, Object.keys(profile.logins))
      if (login.idToken !== refused && !isStale(login)) return asToken(login)
      if (login.refreshToken === null) throw sessionEndedError(server, source)
      const tokens = await refresh(login, login.refreshToken).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        if (error.code === 'invalid_grant') throw sessionEndedError(server, source, error)
        // A server that has another provider since has no such route any more.
        throw error.status === 404 ? sessionEndedError(server, source) : error
      })
      const renewedLogin: Login = {
        ...login,
        idToken: tokens.idToken,
        idTokenExpiresAt: tokens.expiresAt,
        refreshToken: tokens.refreshToken ?? login.refreshToken,
      }
      writeProfile(path, { ...profile, logins: { ...profile.logins, [server.origin]: renewedLogin } })
      return asToken(renewedLogin)
    })
  }

  return {
    /** Null where nobody is logged in. Throws CliError where the session is over or cannot be renewed. */
    async current(): Promise<Token | null> {
      if (io.env.OTPD_TOKEN)
        return {
          value: io.env.OTPD_TOKEN,
          expiresAt: expiryFromToken(io.env.OTPD_TOKEN),
          source: tokenVariable,
          email: null,
        }
      const login = readProfile(path).logins[server.origin]
      if (login === undefined) return null
      return isStale(login) ? await renew(null) : asToken(login)
    },
    /** A token in place of one that the server has just refused; null where there is no way to get one. */
    async replace(refused: Token): Promise<Token | null> {
      const login = refused.source === source ? readProfile(path).logins[server.origin] : undefined
      return login?.refreshToken ? await renew(refused.value) : null
    },
    notLoggedInError: () => notLoggedInError(server, Object.keys(readProfile(path).logins)),
  }
}

const remedies: Partial<Record<string, string>> = {
  password: "Forgotten? On the server's machine: otpd admin reset-password EMAIL",
  'urn:otpd:setup-token': "Another one, on the server's machine: otpd admin setup-token",
}

/** One call of the token endpoint (RFC 6749 §4.3, §6): form in, JSON out. Throws CliError as the server answers. */
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
    const isInvalidGrant = isRecord(response.json) && response.json.error === 'invalid_grant'
    const remedy = isInvalidGrant ? remedies[form.grant_type ?? ''] : undefined
    throw responseError(server, response, remedy === undefined ? [] : [remedy])
  }
  if (!isRecord(response.json) || typeof response.json.id_token !== 'string')
    throw responseError(server, { ...response, json: null })
  const { id_token: idToken, refresh_token: refreshToken, expires_in: expiresIn } = response.json
  return {
    idToken,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : null,
    expiresAt:
      typeof expiresIn === 'number'
        ? new Date(io.now() + expiresIn * 1000).toISOString()
        : expiryFromToken(idToken),
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
