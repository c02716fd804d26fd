import type { Context } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { replyError } from '../client/reply-error.ts'
import { withLock } from './lock.ts'
import { logInAtProvider, type OidcLoginOptions } from './oidc-login.ts'
import type { OidcProvider } from './oidc-provider.ts'
import { credentialsPath, isRecord, readProfile, writeProfile } from './profile.ts'
import { ask, askPassword, emailQuestion, readSecret } from '../terminal/prompt.ts'
import { isLoopback } from './server-choice.ts'
import { emailOf, expiryOf, type Granted } from './token-claims.ts'
import { requestToken } from './tokens.ts'
import { printable, remaining, shellWord, shortPath } from '../terminal/text.ts'

export type LoginOptions = {
  email?: string
  name?: string
  passwordStdin?: boolean
  setupToken?: string
  tokenStdin?: boolean
} & OidcLoginOptions

/** Gets a token in the way that was asked for, and keeps it for this server's origin. */
export async function logIn(context: Context, options: LoginOptions) {
  const { io, output } = context
  const { tokenStdin, ...others } = options
  if (tokenStdin && Object.values(others).some((given) => given !== undefined))
    throw usageError('--token-stdin stands alone: the token says who you are.')
  const connection = context.connect()
  const { server } = connection
  if (!isLoopback(new URL(server.url).hostname) && server.url.startsWith('http://'))
    output.warn(`${server.url} is not encrypted: what you send there can be read on the way.`)

  const granted = tokenStdin
    ? await logInWithToken(context, connection)
    : await grant(context, connection, options)
  const { email } = granted

  const path = credentialsPath(io)
  await withLock(io, `${path}.lock`, async () => {
    const profile = readProfile(path)
    const { idToken, refreshToken, expiresAt: idTokenExpiresAt, provider } = granted
    const login = { email, idToken, idTokenExpiresAt, refreshToken, ...(provider && { provider }) }
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
  if (granted.refreshToken === null && granted.expiresAt !== null)
    output.note(
      output.paintError.dim(
        `  It ends in ${remaining(Date.parse(granted.expiresAt) - io.now())}: there is nothing to renew it with`,
      ),
    )
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is set and comes before this login.')
  output.next(granted.isNew ? 'otpd project create storefront' : 'otpd whoami')
}

type Connection = ReturnType<Context['connect']>
type Login = Granted & { email: string | null; isNew: boolean; provider?: OidcProvider }

/** In the way that the server's developers log in. */
async function grant(context: Context, connection: Connection, options: LoginOptions): Promise<Login> {
  const { email, name, passwordStdin, setupToken, device, callbackPort } = options
  const { url } = connection.server
  const { provider, setupTokenAwaited } = await askHowToLogIn(connection)
  if (provider === null) {
    if ((device ?? callbackPort) !== undefined)
      throw usageError(`${url} has accounts of its own, with passwords.`, 'Log in with: otpd login')
    return await grantByPassword(context, connection, options, setupTokenAwaited)
  }
  if ((email ?? name ?? passwordStdin ?? setupToken) !== undefined)
    throw usageError(
      `Accounts of ${url} log in at ${provider.issuer}, which asks who you are by itself.`,
      'Log in with: otpd login, or with a browser elsewhere: otpd login --device',
    )
  const granted = await logInAtProvider(context, provider, { device, callbackPort })
  return { ...(await checkAtServer(connection, granted, provider)), provider }
}

/** A token of the built-in provider, for a password or for the setup token. */
async function grantByPassword(
  context: Context,
  { server, send }: Connection,
  options: LoginOptions,
  setupTokenAwaited: boolean,
): Promise<Login> {
  const setupToken = options.setupToken ?? (await firstSetupToken(context, setupTokenAwaited))
  const email = options.email ?? (await ask(context, emailQuestion))
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
  context.output.note('No account yet. The setup token that the server printed makes the first one.')
  return await ask(context, { label: 'Setup token', flag })
}

async function nameFor(context: Context, email: string, given: string | undefined) {
  if (given !== undefined || !context.mayAsk) return given
  return await ask(context, { label: 'Name', flag: '--name', byDefault: email.replace(/@.*/, '') })
}

/** The server tells how its developers log in; `provider` is null where that is with passwords of its own. */
async function askHowToLogIn({ server, send }: Connection) {
  const reply = await send({ method: 'GET', path: '/v1/auth/config' })
  if (reply.status >= 400) throw replyError(server, reply)
  const settings = isRecord(reply.json) && isRecord(reply.json.data) ? reply.json.data : {}
  const { kind, issuer, clientId, setupTokenAwaited } = settings
  if (kind === 'built_in') return { provider: null, setupTokenAwaited: setupTokenAwaited === true }
  if (kind !== 'oidc' || typeof issuer !== 'string' || typeof clientId !== 'string')
    throw replyError(server, { ...reply, json: null })
  return { provider: { issuer, clientId }, setupTokenAwaited: false }
}

async function logInWithToken(context: Context, connection: Connection): Promise<Login> {
  const idToken = await readSecret(context, 'token')
  const granted = { idToken, refreshToken: null, expiresAt: expiryOf(idToken) }
  return await checkAtServer(connection, granted, null)
}

/** Nothing is kept that the server does not accept. */
async function checkAtServer(
  { server, send }: Connection,
  granted: Granted,
  provider: OidcProvider | null,
): Promise<Login> {
  const { idToken } = granted
  const email = emailOf(idToken)
  const headers = { authorization: `Bearer ${idToken}` }
  const reply = await send({ method: 'GET', path: '/v1/developer/me', headers })
  if (reply.status >= 400) throw replyError(server, reply, refusalHints(reply.status, provider, email))
  return { ...granted, email, isNew: false }
}

function refusalHints(status: number, provider: OidcProvider | null, email: string | null) {
  if (provider === null) return ['The token came from standard input.']
  const from = `The token came from ${provider.issuer}, for its client ${provider.clientId}.`
  if (status === 401)
    return [from, "That client has to be one of the server's OTPD_OIDC_AUDIENCE: otpd config show"]
  if (status === 403)
    return [from, `The operator admits you with: otpd admin create --email ${shellWord(email ?? 'EMAIL')}`]
  return [from]
}
