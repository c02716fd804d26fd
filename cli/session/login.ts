import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { CliError, findFieldFault, isOutOfScope, usageError } from '../terminal/errors.ts'
import type { Connection } from './http.ts'
import { foreignResponseError, responseError } from './response-error.ts'
import { withLock } from './lock.ts'
import { logInAtProvider, type LoginContext, type OidcLoginOptions } from './oidc-login.ts'
import {
  credentialsPath,
  readStoredLogins,
  writeStoredLogins,
  type OidcProvider,
} from './credentials-file.ts'
import { isRecord } from '../../src/shared/json.ts'
import type { Io } from '../terminal/io.ts'
import {
  ask,
  askPassword,
  askUntilAccepted,
  emailQuestion,
  readSecret,
  totpQuestion,
  type PromptContext,
} from '../terminal/prompt.ts'
import { isLoopback } from '../../src/shared/loopback.ts'
import { emailFromToken, expiryFromToken, readClaims, type TokenGrant } from './token-claims.ts'
import { requestToken } from './tokens.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable, formatRemaining, shortPath } from '../terminal/text.ts'

export type LoginOptions = {
  email?: string
  name?: string
  passwordStdin?: boolean
  totp?: string
  setupToken?: string
  setupTokenFile?: string
  tokenStdin?: boolean
} & OidcLoginOptions

/** Logs in by the method that the flags or the server choose, and stores the login for this server's origin. */
export async function logIn(context: LoginContext & { connect(): Connection }, options: LoginOptions) {
  const { io, output } = context
  const { tokenStdin, ...otherOptions } = options
  if (tokenStdin && Object.values(otherOptions).some((optionValue) => optionValue !== undefined))
    throw usageError('--token-stdin cannot be combined with other login flags: the token says who you are.')
  const connection = context.connect()
  const { server } = connection
  if (!isLoopback(new URL(server.url).hostname) && server.url.startsWith('http://'))
    output.warn(`${server.url} is not encrypted: anything sent there can be read in transit.`)

  const path = credentialsPath(io)
  // A login that cannot be stored would be lost.
  await withLock(io, `${path}.lock`, async () => readStoredLogins(path))

  const session = tokenStdin
    ? await logInWithToken(io, connection)
    : await obtainLogin(context, connection, options)
  const { email } = session

  await withLock(io, `${path}.lock`, async () => {
    const stored = readStoredLogins(path)
    const { idToken, refreshToken, expiresAt: idTokenExpiresAt, sessionEndsAt, provider } = session
    const optional = { ...(sessionEndsAt && { sessionEndsAt }), ...(provider && { provider }) }
    const login = { email, idToken, idTokenExpiresAt, refreshToken, ...optional }
    writeStoredLogins(path, {
      ...stored,
      current: server.url,
      logins: { ...stored.logins, [server.origin]: login },
    })
  })

  const accountText = email === null ? '' : ` as ${output.paintError.bold(printable(email))}`
  if (session.isNew) output.note(`${output.paintError.green('✓')} Account created`)
  output.note(`${output.paintError.green('✓')} Logged in to ${server.url}${accountText}`)
  output.note(
    output.paintError.dim(`  Saved in ${shortPath(path, io.homeDirectory)}, which only you can read`),
  )
  if (session.refreshToken === null && session.expiresAt !== null)
    output.note(
      output.paintError.dim(
        `  Expires in ${formatRemaining(Date.parse(session.expiresAt) - io.now())} and cannot be renewed`,
      ),
    )
  if (io.env.OTPD_TOKEN) output.warn('OTPD_TOKEN is set and takes precedence over this login.')
  output.suggestNext(session.isNew ? 'otpd project create shop' : 'otpd whoami')
}

type Login = TokenGrant & { email: string | null; isNew: boolean; provider?: OidcProvider }

/** Logs in with the server's own accounts or at its OpenID provider, whichever the server uses. */
async function obtainLogin(
  context: LoginContext,
  connection: Connection,
  options: LoginOptions,
): Promise<Login> {
  const { email, name, passwordStdin, totp, device, callbackPort } = options
  const setupToken = options.setupToken ?? options.setupTokenFile
  const { url } = connection.server
  const { provider, setupTokenAwaited } = await fetchLoginMethod(connection)
  if (provider === null) {
    if ((device ?? callbackPort) !== undefined)
      throw usageError(
        `${url} uses its own accounts with passwords, so --device and --callback-port do not apply.`,
        'Log in with: otpd login',
      )
    return await obtainLoginByPassword(context, connection, options, setupTokenAwaited)
  }
  if ((email ?? name ?? passwordStdin ?? totp ?? setupToken) !== undefined)
    throw usageError(
      `Accounts of ${url} log in at ${provider.issuer}: --email, --name, --password-stdin, --totp and --setup-token(-file) do not apply.`,
      'Log in with: otpd login, or with a browser on another device: otpd login --device',
    )
  const accept = (tokens: TokenGrant) => checkAtServer(connection, tokens, provider)
  return { ...(await logInAtProvider(context, provider, { device, callbackPort }, accept)), provider }
}

/** Gets a token from the server itself, for a password or for the setup token. */
async function obtainLoginByPassword(
  context: PromptContext,
  { server, send }: Connection,
  options: LoginOptions,
  setupTokenAwaited: boolean,
): Promise<Login> {
  const setupToken =
    options.setupToken ??
    readSetupTokenFile(context.io, options.setupTokenFile) ??
    (await askSetupToken(context, setupTokenAwaited))
  if (setupToken !== null) return await createAccount(context, { server, send }, options, setupToken)
  const email = options.email ?? (await ask(context, emailQuestion))
  const password = await askPassword(context, { fromInput: options.passwordStdin === true, repeat: false })
  const { totp } = options
  const form = { grant_type: 'password', username: email, password, ...(totp !== undefined && { totp }) }
  const request = (code: Record<string, string> = {}) =>
    requestToken(context.io, server, send, { ...form, ...code })
  const tokens = await request().catch(async (error: unknown) => {
    if (!(error instanceof CliError && error.code === 'mfa_required') || !context.mayAsk) throw error
    return await askUntilAccepted(
      context,
      () => ask(context, totpQuestion),
      (code) => request({ totp: code }),
      findCodeFault,
    )
  })
  return { ...tokens, email: emailFromToken(tokens.idToken) ?? email, isNew: false }
}

/** Returns what to do about a refused code, whose password was right; undefined for another error. */
const findCodeFault = (error: unknown) =>
  error instanceof CliError && error.code === 'invalid_grant'
    ? 'That code is wrong or was used. Enter the next one, or a recovery code.'
    : undefined

/** Creates an account. On a terminal, a password that the server refuses, such as a common one, is asked again. */
async function createAccount(
  context: PromptContext,
  { server, send }: Connection,
  options: LoginOptions,
  setupToken: string,
): Promise<Login> {
  const { io } = context
  await requireSetupToken(io, { server, send }, setupToken)
  const email = options.email ?? (await ask(context, emailQuestion))
  const name = await askName(context, email, options.name)
  const fromInput = options.passwordStdin === true
  const tokens = await askUntilAccepted(
    context,
    () => askPassword(context, { fromInput, repeat: true }),
    (password) => {
      const account = { setup_token: setupToken, email, password, ...(name && { name }) }
      return requestToken(io, server, send, { grant_type: setupTokenGrant, ...account })
    },
    (error) => (context.mayAsk && !fromInput ? findFieldFault(error, 'password') : undefined),
  )
  return { ...tokens, email: emailFromToken(tokens.idToken) ?? email, isNew: true }
}

/** @throws usage error if the file cannot be read */
function readSetupTokenFile({ workingDirectory }: Io, file: string | undefined) {
  if (file === undefined) return undefined
  try {
    return readFileSync(resolve(workingDirectory, file), 'utf8').trim()
  } catch {
    throw usageError(
      `The --setup-token-file ${file} cannot be read.`,
      'It is in the data directory of the server, until the first account exists.',
    )
  }
}

/**
 * Refuses a bad setup token before a name and a password are typed in vain. The server checks the token before the
 * account, whose address is invalid here, so that none is created.
 *
 * @throws CliError invalid_grant
 */
async function requireSetupToken(io: Io, { server, send }: Connection, setupToken: string) {
  const form = { grant_type: setupTokenGrant, setup_token: setupToken, email: '-', password: '-' }
  await requestToken(io, server, send, form).catch((error: unknown) => {
    const isAccountRefused =
      error instanceof CliError && error.status === 400 && error.code !== 'invalid_grant'
    if (!isAccountRefused) throw error
  })
}

const setupTokenGrant = 'urn:otpd:setup-token'

/** Prompts for the setup token if the server has no account yet: no password could be right. */
async function askSetupToken(context: PromptContext, setupTokenAwaited: boolean) {
  if (!setupTokenAwaited) return null
  const flag =
    '--setup-token-file FILE; the server keeps the token in the file setup-token of its data directory'
  context.output.note(
    'No account yet. Create the first one with the setup token, which is in the file setup-token of the data directory.',
  )
  return await ask(context, { label: 'Setup token', flag })
}

async function askName(context: PromptContext, email: string, nameFlag: string | undefined) {
  if (nameFlag !== undefined || !context.mayAsk) return nameFlag
  return await ask(context, { label: 'Name', flag: '--name', defaultAnswer: email.replace(/@.*/, '') })
}

/** Asks the server how its developers log in. `provider` is null if they use passwords of the server's own accounts. */
async function fetchLoginMethod({ server, send }: Connection) {
  const response = await send({ method: 'GET', path: '/v1/auth/config' })
  if (response.status >= 400) throw responseError(server, response)
  const settings = isRecord(response.json) && isRecord(response.json.data) ? response.json.data : {}
  const { kind, issuer, clientId, setupTokenAwaited } = settings
  if (kind === 'built_in') return { provider: null, setupTokenAwaited: setupTokenAwaited === true }
  if (kind !== 'oidc' || typeof issuer !== 'string' || typeof clientId !== 'string')
    throw foreignResponseError(server, response.status)
  return { provider: { issuer, clientId }, setupTokenAwaited: false }
}

async function logInWithToken(io: Io, connection: Connection): Promise<Login> {
  const idToken = await readSecret(io, 'token')
  const tokens = { idToken, refreshToken: null, expiresAt: expiryFromToken(idToken) }
  return await checkAtServer(connection, tokens, null)
}

/** Checks that the server accepts the token, before it is stored. */
async function checkAtServer(
  { server, send }: Connection,
  tokens: TokenGrant,
  provider: OidcProvider | null,
): Promise<Login> {
  const { idToken } = tokens
  const email = emailFromToken(idToken)
  const headers = { authorization: `Bearer ${idToken}` }
  const response = await send({ method: 'GET', path: '/v1/developer/me', headers })
  if (response.status >= 400) {
    const error = responseError(server, response, refusalHints(response.status, provider, idToken))
    // An API token that may not read the profile is valid nevertheless.
    if (!isOutOfScope(error)) throw error
  }
  return { ...tokens, email, isNew: false }
}

function refusalHints(status: number, provider: OidcProvider | null, idToken: string) {
  if (provider === null) return ['The token came from standard input.']
  const sourceHint = `The token came from ${provider.issuer}, for its client ${provider.clientId}.`
  if (status === 401)
    return [sourceHint, "The server's OTPD_OIDC_AUDIENCE must include that client. See: otpd config show"]
  if (status !== 403) return [sourceHint]
  // An account that the operator creates is found by its verified address; some providers send the text `true`.
  if (String(readClaims(idToken).email_verified) !== 'true')
    return [
      sourceHint,
      'It does not say that your e-mail address is verified (email_verified), so otpd admin create does not help.',
      'An operator can admit you with: OTPD_SIGNUP=open',
    ]
  const email = emailFromToken(idToken) ?? 'EMAIL'
  return [sourceHint, `An operator can admit you with: otpd admin create --email ${shellWord(email)}`]
}
