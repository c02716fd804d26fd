import { CliError, exitCodes } from '../terminal/errors.ts'
import type { SendHttp } from '../client/http.ts'
import { replyError } from '../client/reply-error.ts'
import type { Io } from '../terminal/io.ts'
import { withLock } from './lock.ts'
import { credentialsPath, isRecord, readProfile, writeProfile, type Login } from './profile.ts'
import { whence, type ServerChoice } from './server-choice.ts'
import { shortPath } from '../terminal/text.ts'
import { expiryOf, type Granted } from './token-claims.ts'

export type Token = { value: string; expiresAt: string | null; from: string; email: string | null }

export const tokenVariable = 'OTPD_TOKEN'

/** A token that is about to expire is renewed before it is sent: the server's clock may run ahead of ours. */
const renewBeforeMs = 30_000

export type Tokens = ReturnType<typeof createTokens>

/** The ID token for one server: from `OTPD_TOKEN`, else the login kept for exactly this origin. */
export function createTokens(io: Io, server: ServerChoice, send: SendHttp, timeoutMs: number) {
  const path = credentialsPath(io)
  const from = shortPath(path, io.homeDirectory)

  const asToken = (login: Login): Token => ({
    value: login.idToken,
    expiresAt: login.idTokenExpiresAt,
    from,
    email: login.email,
  })

  const isStale = (login: Login) =>
    login.idTokenExpiresAt !== null && Date.parse(login.idTokenExpiresAt) - renewBeforeMs <= io.now()

  /** At whoever gave it: the provider that was logged in at, whatever the server names by now. */
  async function refresh({ provider, idToken }: Login, refreshToken: string): Promise<Granted> {
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
      if (login === undefined) throw notLoggedIn(server, Object.keys(profile.logins))
      if (login.idToken !== refused && !isStale(login)) return asToken(login)
      if (login.refreshToken === null) throw sessionOver(server, from)
      const granted = await refresh(login, login.refreshToken).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        if (error.code === 'invalid_grant') throw sessionOver(server, from, error)
        // A server that has another provider since has no such route any more.
        throw error.status === 404 ? sessionOver(server, from) : error
      })
      const renewed: Login = {
        ...login,
        idToken: granted.idToken,
        idTokenExpiresAt: granted.expiresAt,
        refreshToken: granted.refreshToken ?? login.refreshToken,
      }
      writeProfile(path, { ...profile, logins: { ...profile.logins, [server.origin]: renewed } })
      return asToken(renewed)
    })
  }

  return {
    /** Null where nobody is logged in. Throws CliError where the session is over or cannot be renewed. */
    async current(): Promise<Token | null> {
      if (io.env.OTPD_TOKEN)
        return {
          value: io.env.OTPD_TOKEN,
          expiresAt: expiryOf(io.env.OTPD_TOKEN),
          from: tokenVariable,
          email: null,
        }
      const login = readProfile(path).logins[server.origin]
      if (login === undefined) return null
      return isStale(login) ? await renew(null) : asToken(login)
    },
    /** A token in place of one that the server has just refused; null where there is no way to get one. */
    async replace(refused: Token): Promise<Token | null> {
      const login = refused.from === from ? readProfile(path).logins[server.origin] : undefined
      return login?.refreshToken ? await renew(refused.value) : null
    },
    notLoggedIn: () => notLoggedIn(server, Object.keys(readProfile(path).logins)),
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
): Promise<Granted> {
  const reply = await send({
    method: 'POST',
    path: '/v1/auth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })
  if (reply.status >= 400) {
    const isWrong = isRecord(reply.json) && reply.json.error === 'invalid_grant'
    const remedy = isWrong ? remedies[form.grant_type ?? ''] : undefined
    throw replyError(server, reply, remedy === undefined ? [] : [remedy])
  }
  if (!isRecord(reply.json) || typeof reply.json.id_token !== 'string')
    throw replyError(server, { ...reply, json: null })
  const { id_token: idToken, refresh_token: refreshToken, expires_in: expiresIn } = reply.json
  return {
    idToken,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : null,
    expiresAt:
      typeof expiresIn === 'number' ? new Date(io.now() + expiresIn * 1000).toISOString() : expiryOf(idToken),
  }
}

function notLoggedIn(server: ServerChoice, otherOrigins: string[]) {
  const elsewhere = otherOrigins.filter((origin) => origin !== server.origin)
  const hints = [whence(server)]
  if (elsewhere.length > 0)
    hints.push(`You are logged in to ${elsewhere.join(', ')}: choose one with --server.`)
  hints.push(`Log in with: otpd login --server ${server.url}`)
  return new CliError(exitCodes.notAllowed, 'NOT_LOGGED_IN', `Not logged in to ${server.url}.`, { hints })
}

function sessionOver(server: ServerChoice, from: string, cause?: CliError) {
  return new CliError(exitCodes.notAllowed, 'SESSION_ENDED', `The session at ${server.url} has ended.`, {
    hints: [`The token came from ${from}.`, `Log in again with: otpd login --server ${server.url}`],
    cause,
    ...(cause?.body !== undefined && { body: cause.body }),
  })
}
