import { CliError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import type { Connection, SendHttp } from './http.ts'
import { withLock } from './lock.ts'
import { credentialsPath, readStoredLogins, writeStoredLogins, type Login } from './credentials-file.ts'

/** Logs out: removes the stored login first, so that it is gone even if the server cannot be reached. */
export async function logOut(
  { io, output, timeoutMs }: { io: Io; output: Output; timeoutMs: number },
  { server, send }: Connection,
) {
  const path = credentialsPath(io)
  const login = await withLock(io, `${path}.lock`, async () => {
    const stored = readStoredLogins(path)
    const { [server.origin]: existingLogin, ...logins } = stored.logins
    // A server with a name was chosen with `context use`, and stays current.
    const clearsCurrent =
      stored.current === server.url && !Object.values(stored.contexts).includes(server.url)
    if (existingLogin !== undefined)
      writeStoredLogins(path, { ...stored, current: clearsCurrent ? null : stored.current, logins })
    return existingLogin
  })
  if (login === undefined) return output.note(`Not logged in to ${server.url}; nothing to do.`)
  if (login.refreshToken !== null && !(await tryRevoke(login, login.refreshToken, { send, timeoutMs })))
    output.warn('The session could not be ended at the server; it will expire there.')
  output.note(`${output.paintError.green('✓')} Logged out of ${server.url}`)
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is still set, and commands keep using it.')
}

/** Revokes the refresh token (RFC 7009): any response that is not an error means that it is no longer valid. */
async function tryRevoke(
  { provider }: Login,
  token: string,
  { send, timeoutMs }: { send: SendHttp; timeoutMs: number },
) {
  try {
    if (provider !== undefined) {
      const { openProvider } = await import('./oidc-provider.ts')
      await (await openProvider(provider, timeoutMs)).revoke(token)
      return true
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = new URLSearchParams({ token }).toString()
    const { status } = await send({ method: 'POST', path: '/v1/auth/revoke', headers, body })
    return status < 400
  } catch (error) {
    if (error instanceof CliError) return false
    throw error
  }
}
