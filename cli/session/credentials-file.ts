import {
  mkdirSync,
  openSync,
  closeSync,
  fsyncSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError, exitCodes } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import { printable } from '../terminal/text.ts'
import type { NamedServer } from './server-choice.ts'
import { codeText, explainCode } from '../../src/shared/error-cause.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'
import { restrictAccess } from '../../src/shared/restrict-access.ts'

/** State that the CLI keeps between commands, in `credentials.json`. */
export type StoredLogins = {
  /** Server of the last login or `context use`; commands use it unless another is named. */
  current: string | null
  /** Logins by the server's origin. */
  logins: Record<string, Login>
  /** Server addresses by the names that the user gave them. */
  contexts: Record<string, string>
}

/** The operator's OpenID provider, and the client id of this program there: a public client (RFC 8252 §8.4). */
export type OidcProvider = { issuer: string; clientId: string }

export type Login = {
  email: string | null
  idToken: string
  idTokenExpiresAt: string | null
  /** Null for a token from --token-stdin, which cannot be renewed. */
  refreshToken: string | null
  /** End of the session if it is not renewed before; absent if it is not known. */
  sessionEndsAt?: string
  /** OpenID provider that renews the session; absent if the server itself does. */
  provider?: OidcProvider
}

const noLogins = (): StoredLogins => ({ current: null, logins: {}, contexts: {} })

/** Returns `$OTPD_CONFIG_DIR`, or `otpd` below the user's configuration directory (XDG Base Directory Specification). */
function configDirectory(io: Io) {
  if (io.env.OTPD_CONFIG_DIR) return io.env.OTPD_CONFIG_DIR
  return join(io.env.XDG_CONFIG_HOME || join(io.homeDirectory, '.config'), 'otpd')
}

/** Path of the credentials file. */
export const credentialsPath = (io: Io) => join(configDirectory(io), 'credentials.json')

/**
 * Reads the credentials file; no logins if there is none yet. A file that others can read is rejected rather
 * than silently tightened, because it may already have been read.
 *
 * @throws CliError CREDENTIALS_EXPOSED, CREDENTIALS_CLOSED, or a usage error when the content is invalid
 */
export function readStoredLogins(path: string): StoredLogins {
  let text: string
  try {
    const { mode } = statSync(path)
    if ((mode & 0o077) !== 0)
      throw new CliError(
        exitCodes.notAllowed,
        'CREDENTIALS_EXPOSED',
        `${path} can be read by other users (mode ${(mode & 0o777).toString(8)}).`,
        { hints: [`${restrictAccess([path])} && otpd login`] },
      )
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (isMissing(error)) return noLogins()
    if (isRecord(error) && error.code === 'EACCES')
      throw new CliError(
        exitCodes.notAllowed,
        'CREDENTIALS_CLOSED',
        `This user is not allowed to read ${path}.`,
        {
          hints: ['Run as its owner, or keep credentials elsewhere: OTPD_CONFIG_DIR=DIR'],
          cause: error,
        },
      )
    throw error
  }
  const storedLogins = parseStoredLogins(text)
  if (storedLogins === null)
    throw new CliError(exitCodes.usage, 'CREDENTIALS_INVALID', `${path} is not an otpd credentials file.`, {
      hints: ['Move it away and log in again: otpd login'],
    })
  return storedLogins
}

/**
 * Writes the credentials file atomically: a reader never sees a partial file, and a full disk leaves the old one.
 *
 * @throws CliError CREDENTIALS_NOT_WRITABLE
 */
export function writeStoredLogins(path: string, storedLogins: StoredLogins) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporaryPath = `${path}.${crypto.randomUUID()}.tmp`
  try {
    const file = openSync(temporaryPath, 'wx', 0o600)
    try {
      writeSync(file, `${JSON.stringify({ version: 1, ...storedLogins }, null, 2)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporaryPath, path)
  } catch (error) {
    rmSync(temporaryPath, { force: true })
    throw asWriteError(path, error)
  }
}

/** Explains why the configuration directory cannot be written to; other errors stay as they are. */
export function asWriteError(path: string, error: unknown): unknown {
  const code = isRecord(error) ? error.code : undefined
  if (typeof code !== 'string' || codeText(code) === undefined) return error
  return new CliError(
    exitCodes.notAllowed,
    'CREDENTIALS_NOT_WRITABLE',
    `Cannot write to ${dirname(path)} (${explainCode(code)}).`,
    {
      hints: [
        'Keep credentials in a folder of this user: OTPD_CONFIG_DIR=DIR',
        'A program needs no login: give it an API token in OTPD_TOKEN.',
      ],
      cause: error,
    },
  )
}

/**
 * Finds a server by the name that the user gave it.
 *
 * @throws CliError NOT_FOUND
 */
export function requireContext({ contexts }: StoredLogins, name: string): NamedServer {
  const url = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (url !== undefined) return { name, url }
  throw new CliError(exitCodes.notFound, 'NOT_FOUND', `There is no context ${printable(name)}.`, {
    hints: ['List contexts with: otpd context list', `Add it with: otpd context add ${printable(name)} URL`],
  })
}

/** The server that was logged in to or chosen last, with its name if it has one. */
export function currentServer({ current, contexts }: StoredLogins): { url: string; name?: string } | null {
  if (current === null) return null
  const name = Object.keys(contexts).find((candidate) => contexts[candidate] === current)
  return { url: current, ...(name !== undefined && { name }) }
}

function parseStoredLogins(text: string): StoredLogins | null {
  const value = parseJson(text)
  if (!isRecord(value) || value.version !== 1 || !isRecord(value.logins)) return null
  const logins: Record<string, Login> = {}
  for (const [origin, login] of Object.entries(value.logins)) {
    if (!isRecord(login) || typeof login.idToken !== 'string') return null
    logins[origin] = {
      email: stringOrNull(login.email),
      idToken: login.idToken,
      idTokenExpiresAt: stringOrNull(login.idTokenExpiresAt),
      refreshToken: stringOrNull(login.refreshToken),
      ...(typeof login.sessionEndsAt === 'string' && { sessionEndsAt: login.sessionEndsAt }),
      ...readProvider(login.provider),
    }
  }
  // Files written before contexts existed have none.
  const contextEntries = isRecord(value.contexts) ? Object.entries(value.contexts) : []
  const contexts = Object.fromEntries(
    contextEntries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
  return { current: stringOrNull(value.current), logins, contexts }
}

function readProvider(value: unknown): Pick<Login, 'provider'> {
  if (!isRecord(value) || typeof value.issuer !== 'string' || typeof value.clientId !== 'string') return {}
  return { provider: { issuer: value.issuer, clientId: value.clientId } }
}

const stringOrNull = (value: unknown) => (typeof value === 'string' ? value : null)

const isMissing = (error: unknown) => isRecord(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
