import type { Context } from './context.ts'
import { CliError, exitCodes, usageError } from './errors.ts'
import { replyError } from './http.ts'
import { withLock } from './lock.ts'
import { credentialsPath, isRecord, readProfile, writeProfile } from './profile.ts'
import { ask, askPassword, readSecret } from './prompt.ts'
import { isLoopback, type ServerChoice } from './server-choice.ts'
import { expiryOf, readClaims, requestToken, type Granted } from './tokens.ts'
import { printable, shortPath } from './text.ts'

export type LoginOptions = {
  email?: string
  name?: string
  passwordStdin?: boolean
  setupToken?: string
  tokenStdin?: boolean
}

/** Gets a token in the way that was asked for, and keeps it for this server's origin. */
export async function logIn(context: Context, options: LoginOptions) {
  const { io, output } = context
  if (options.tokenStdin && (options.setupToken ?? options.email ?? options.passwordStdin) !== undefined)
    throw usageError('--token-stdin stands alone: the token says who you are.')
  const connection = context.connect()
  const { server } = connection
  if (!isLoopback(new URL(server.url).hostname) && server.url.startsWith('http://'))
    output.warn(`${server.url} is not encrypted: what you send there can be read on the way.`)

  const granted = options.tokenStdin
    ? await checkToken(connection, await readSecret(context, 'token'))
    : await grant(context, connection, options)
  const { email } = granted

  const path = credentialsPath(io)
  await withLock(io, `${path}.lock`, async () => {
    const profile = readProfile(path)
    const { idToken, refreshToken, expiresAt: idTokenExpiresAt } = granted
    const login = { email, idToken, idTokenExpiresAt, refreshToken }
    writeProfile(path, { current: server.url, logins: { ...profile.logins, [server.origin]: login } })
  })

  const who = email === null ? '' : ` as ${output.paintError.bold(printable(email))}`
  if (options.setupToken !== undefined) output.note(`${output.paintError.green('✓')} Account created`)
  output.note(`${output.paintError.green('✓')} Logged in to ${server.url}${who}`)
  output.note(
    output.paintError.dim(`  Kept in ${shortPath(path, io.homeDirectory)}, which only you can read`),
  )
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is set and comes before this login.')
  output.next(options.setupToken === undefined ? 'otpd whoami' : 'otpd project create storefront')
}

type Connection = ReturnType<Context['connect']>
type Login = Granted & { email: string | null }

/** A token of the built-in provider, for a password or for the setup token. */
async function grant(context: Context, { server, send }: Connection, options: LoginOptions): Promise<Login> {
  await requireBuiltIn(server, send)
  const isSetup = options.setupToken !== undefined
  const email = options.email ?? (await ask(context, { label: 'Email', flag: '--email' }))
  const name = isSetup ? await nameFor(context, email, options.name) : ''
  const password = await askPassword(context, { fromInput: options.passwordStdin === true, repeat: isSetup })
  const form: Record<string, string> = isSetup
    ? { grant_type: 'urn:otpd:setup-token', setup_token: options.setupToken ?? '', email, password, name }
    : { grant_type: 'password', username: email, password }
  return { ...(await requestToken(context.io, server, send, form)), email }
}

async function nameFor(context: Context, email: string, given: string | undefined) {
  const byDefault = email.replace(/@.*/, '')
  if (given !== undefined) return given
  return context.mayAsk ? await ask(context, { label: 'Name', flag: '--name', byDefault }) : byDefault
}

/** The server tells how its accounts log in. */
async function requireBuiltIn(server: ServerChoice, send: Connection['send']) {
  const reply = await send({ method: 'GET', path: '/v1/auth/config' })
  if (reply.status >= 400) throw replyError(server, reply)
  if (!isRecord(reply.json) || !isRecord(reply.json.data)) throw replyError(server, { ...reply, json: null })
  const { provider, issuer } = reply.json.data
  if (provider === 'built-in') return
  throw new CliError(
    exitCodes.usage,
    'EXTERNAL_PROVIDER',
    `Accounts of ${server.url} log in at ${typeof issuer === 'string' ? printable(issuer) : 'another provider'}.`,
    {
      hints: [
        'Get an ID token there, then: otpd login --token-stdin < token',
        'Or for one command: OTPD_TOKEN=… otpd project list',
      ],
    },
  )
}

/** Nothing is kept that the server does not accept. */
async function checkToken({ server, send }: Connection, idToken: string): Promise<Login> {
  const headers = { authorization: `Bearer ${idToken}` }
  const reply = await send({ method: 'GET', path: '/v1/developer/me', headers })
  if (reply.status >= 400) throw replyError(server, reply, ['The token came from standard input.'])
  const { email } = readClaims(idToken)
  return {
    idToken,
    refreshToken: null,
    expiresAt: expiryOf(idToken),
    email: typeof email === 'string' ? email : null,
  }
}
