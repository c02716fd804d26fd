import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'
import { withLock } from '../session/lock.ts'
import {
  credentialsPath,
  readStoredLogins,
  requireContext,
  writeStoredLogins,
  type StoredLogins,
} from '../session/credentials-file.ts'
import { parseServer } from '../session/server-choice.ts'
import { printable } from '../terminal/text.ts'

const namePattern = /^[A-Za-z0-9][\w.-]{0,62}$/

/** Registers the commands for contexts: names for servers. */
export function addContextCommands(program: CliCommand) {
  const context = program.command('context').description('named servers, to switch between them')

  context
    .command('list')
    .alias('ls')
    .description('list contexts with their server and login')
    .examples('otpd context list')
    .run(async ({ io, output }) => {
      const contexts = listContexts(readStoredLogins(credentialsPath(io)))
      const text = () => {
        if (contexts.length === 0) return 'No contexts yet. Add one: otpd context add NAME URL'
        const rows = contexts.map(({ name, server, email, isLoggedIn, isCurrent }) => [
          isCurrent ? output.paint.green('*') : '',
          printable(name),
          printable(server),
          printable(email ?? (isLoggedIn ? 'with a token' : '-')),
        ])
        return output.formatTable(['', 'NAME', 'SERVER', 'LOGGED IN'], rows)
      }
      const names = contexts.map(({ name }) => name)
      output.printData(contexts, text, names)
    })

  context
    .command('add')
    .alias('new')
    .description('give a server a name')
    .argument('<name>', 'letters, digits, dots, dashes')
    .argument('<url>', "the server's address")
    .examples('otpd context add local http://127.0.0.1:8080')
    .run(async (context, name: string, url: string) => {
      if (!namePattern.test(name))
        throw usageError(
          'A context name has up to 63 letters, digits, dots and dashes, and starts with a letter or digit.',
        )
      const server = parseServer(url, 'the command line')
      await updateStoredLogins(context, (stored) => {
        if (Object.hasOwn(stored.contexts, name))
          throw new CliError(exitCodes.refused, 'CONFLICT', `The context ${name} already exists.`, {
            hints: [`Remove it first: otpd context remove ${name}`],
          })
        return { ...stored, contexts: { ...stored.contexts, [name]: server.url } }
      })
      printContext(context, { name, server: server.url }, 'Added')
      context.output.suggestNext(`otpd context use ${name}`)
    })

  context
    .command('use')
    .description('make this the default server')
    .argument('<context>', 'name of the context')
    .examples('otpd context use local')
    .run(async (context, name: string) => {
      const { io, output } = context
      const { url, origin } = await updateStoredLogins(context, (stored) => {
        const namedServer = requireContext(stored, name)
        return { ...stored, current: namedServer.url }
      }).then(({ current }) => parseServer(current ?? '', `the context ${name}`))
      printContext(context, { name, server: url }, 'Using')
      for (const variable of ['OTPD_SERVER', 'OTPD_CONTEXT'])
        if (io.env[variable]) output.warn(`${variable} is set and takes precedence over this choice.`)
      if (readStoredLogins(credentialsPath(io)).logins[origin] === undefined) output.suggestNext('otpd login')
    })

  context
    .command('remove')
    .alias('rm')
    .description('remove a context; the login stays until otpd logout')
    .argument('<context>', 'name of the context')
    .examples('otpd context remove local')
    .run(async (context, name: string) => {
      const removedServer = requireContext(readStoredLogins(credentialsPath(context.io)), name)
      await updateStoredLogins(context, (stored) => {
        const { [requireContext(stored, name).name]: _removed, ...contexts } = stored.contexts
        // Nothing but the context made it the current server, if there was no login.
        const isOrphaned =
          stored.current === removedServer.url &&
          findLogin(stored, removedServer.url) === undefined &&
          !Object.values(contexts).includes(removedServer.url)
        return { ...stored, contexts, ...(isOrphaned && { current: null }) }
      })
      printContext(context, { name, server: removedServer.url }, 'Removed')
    })
}

/** Lists contexts in the shape that --json prints; no server is called. */
function listContexts(stored: StoredLogins) {
  return Object.entries(stored.contexts)
    .toSorted(([nameA], [nameB]) => nameA.localeCompare(nameB))
    .map(([name, url]) => {
      const login = findLogin(stored, url)
      const isLoggedIn = login !== undefined
      return { name, server: url, email: login?.email ?? null, isLoggedIn, isCurrent: url === stored.current }
    })
}

/** Finds the login at a server. */
const findLogin = ({ logins }: StoredLogins, url: string) => logins[URL.parse(url)?.origin ?? '']

function printContext({ output }: Context, data: { name: string; server: string }, label: string) {
  output.printData(data, () =>
    output.done(`${label} ${output.paint.bold(data.name)} (${printable(data.server)})`),
  )
}

/** Edits the credentials file under its lock. Returns the logins as written. */
async function updateStoredLogins(
  { io }: Context,
  edit: (stored: StoredLogins) => StoredLogins,
): Promise<StoredLogins> {
  const path = credentialsPath(io)
  return await withLock(io, `${path}.lock`, async () => {
    const stored = edit(readStoredLogins(path))
    writeStoredLogins(path, stored)
    return stored
  })
}
