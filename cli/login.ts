import type { Context } from './context.ts'
import { CliError, exitCodes, usageError } from './errors.ts'
import { replyError } from './reply-error.ts'
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
    writeProfile(path, {
      ...profile,
      current: server.url,
      logins: { ...profile.logins, [server.origin]: login },
    })
  })

  const who = email === null ? '' : ` as ${output.paintError.bold(printable(email))}`
  if (granted.isNew) output.note(`${output.paintError.green('✓')} Account created`)
  output.note(`${output.paintError.green('✓')} Logged in to ${server.url}${who}`)
  output.note(
    output.paintError.dim(`  Kept in ${shortPath(path, io.homeDirectory)}, which only you can read`),
  )
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is set and comes before this login.')
  output.next(granted.isNew ? 'otpd project create storefront' : 'otpd whoami')
}

type Connection = ReturnType<Context['connect']>
type Login = Granted & { email: string | null; isNew: boolean }

/** A token of the built-in provider, for a password or for the setup token. */
async function grant(context: Context, { server, send }: Connection, options: LoginOptions): Promise<Login> {
  const { setupTokenAwaited } = await askHowToLogIn(server, send)
  const setupToken = options.setupToken ?? (await firstSetupToken(context, setupTokenAwaited))
  const email = options.email ?? (await ask(context, { label: 'Email', flag: '--email' }))
  const name = setupToken === null ? undefined : await nameFor(context, email, options.name)
  const fromInput = options.passwordStdin === true
  const password = await askPassword(context, { fromInput, repeat: setupToken !== null })
  const form: Record<string, string> =
    setupToken === null
      ? { grant_type: 'password', username: email, password }
      : {
          grant_type: 'urn:otpd:setup-token',
          setup_token: setupToken,
          email,
          password,
          ...(name && { name }),
        }
  return { ...(await requestToken(context.io, server, send, form)), email, isNew: setupToken !== null }
}

/** On a server without any account a password cannot be right, so a person is asked for the token at once. */
async function firstSetupToken(context: Context, setupTokenAwaited: boolean) {
  if (!setupTokenAwaited) return null
  const flag = '--setup-token, which the server printed at its start or keeps in its data directory'
  context.output.note('This server has no account yet. The setup token that it printed makes the first one.')
  return await ask(context, { label: 'Setup token', flag })
}

async function nameFor(context: Context, email: string, given: string | undefined) {
  if (given !== undefined || !context.mayAsk) return given
  return await ask(context, { label: 'Name', flag: '--name', byDefault: email.replace(/@.*/, '') })
}

/** The server tells how its developers log in. */
async function askHowToLogIn(server: ServerChoice, send: Connection['send']) {
  const reply = await send({ method: 'GET', path: '/v1/auth/config' })
  if (reply.status >= 400) throw replyError(server, reply)
  const settings = isRecord(reply.json) && isRecord(reply.json.data) ? reply.json.data : null
  if (settings === null) throw replyError(server, { ...reply, json: null })
  const { kind, issuer, setupTokenAwaited } = settings
  if (kind === 'built_in') return { setupTokenAwaited: setupTokenAwaited === true }
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
    isNew: false,
  }
}
