import type { Context } from './context.ts'
import { CliError } from './errors.ts'
import { withLock } from './lock.ts'
import { credentialsPath, readProfile, writeProfile } from './profile.ts'

/** Forgets the login first: whatever the server answers, this machine no longer holds it. */
export async function logOut({ io, connect, output }: Context) {
  const { server, send } = connect()
  const path = credentialsPath(io)
  const login = await withLock(io, `${path}.lock`, async () => {
    const profile = readProfile(path)
    const { [server.origin]: found, ...logins } = profile.logins
    // A server that has a name was chosen by it, and stays so.
    const forget = profile.current === server.url && !Object.values(profile.contexts).includes(server.url)
    if (found !== undefined)
      writeProfile(path, { ...profile, current: forget ? null : profile.current, logins })
    return found
  })
  if (login === undefined) return output.note(`Not logged in to ${server.url}; nothing to do.`)
  if (login.refreshToken !== null) {
    // RFC 7009: whatever is answered but a failure of the exchange means that the token is no good any more.
    const body = new URLSearchParams({ token: login.refreshToken }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const told = await send({ method: 'POST', path: '/v1/auth/revoke', headers, body }).catch(
      (error: unknown) => {
        if (error instanceof CliError) return null
        throw error
      },
    )
    if (told === null || told.status >= 400)
      output.warn('The server could not be told: the session there ends by itself.')
  }
  output.note(`${output.paintError.green('✓')} Logged out of ${server.url}`)
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is still set; commands go on using it.')
}
