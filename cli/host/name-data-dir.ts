import type { LoadedConfig } from '../../src/config/config.ts'
import type { Context } from '../context.ts'
import { credentialsPath, readStoredLogins } from '../session/credentials-file.ts'
import { readClaims } from '../session/token-claims.ts'
import { CliError } from '../terminal/errors.ts'
import { printable, shortPath } from '../terminal/text.ts'

/** Contexts of commands that have named their data directory: some open it several times. */
const namedBy = new WeakSet<Context>()

/**
 * Names the data directory of a host command if nothing chose it. Unless `--data-dir` did, warns if the account that
 * this user is logged in with is not in it: the server of that login then uses another directory.
 */
export async function nameDataDir(context: Context, { config, settings }: LoadedConfig): Promise<void> {
  const { io, output } = context
  const dataDir = config?.dataDir ?? null
  if (dataDir === null || namedBy.has(context)) return
  namedBy.add(context)
  const displayPath = printable(shortPath(dataDir, io.homeDirectory))
  const { origin } = settings.find(({ setting }) => setting === 'server.dataDir') ?? {}
  if (origin === 'default')
    output.note(`Data directory: ${displayPath} (the default; --data-dir names another).`)
  // A person who named the directory meant it.
  const login = origin === '--data-dir' ? null : findLogin(context)
  if (login === null) return
  const { hasDeveloper } = await import('../../src/server/bundle.ts')
  if (hasDeveloper(dataDir, login.subject) !== false) return
  output.warn(
    `the server that you are logged in to, ${printable(login.url)}, uses another data directory: your account there${login.email === null ? '' : `, ${printable(login.email)},`} is not in ${displayPath}.`,
  )
}

/** Finds the account of the stored login; null without one, or with a token that has no subject. */
function findLogin(context: Context): { url: string; subject: string; email: string | null } | null {
  try {
    const { url, origin } = context.connect().server
    const login = readStoredLogins(credentialsPath(context.io)).logins[origin]
    const { sub } = login === undefined ? {} : readClaims(login.idToken)
    return login && typeof sub === 'string' ? { url, subject: sub, email: login.email } : null
  } catch (error) {
    // The credentials file matters to commands that call a server.
    if (error instanceof CliError) return null
    throw error
  }
}
