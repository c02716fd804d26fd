import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { CliError } from '../terminal/errors.ts'

type Options = { readOnly?: true; ascii?: true }

/** Registers the console command. */
export function addConsoleCommand(program: CliCommand) {
  program
    .command('console')
    .description('open the full-screen console, as otpd without arguments does')
    .option('--read-only', 'disable keys that change anything')
    .option('--ascii', 'draw with ASCII characters only')
    .examples('otpd console', 'otpd console --read-only')
    .run((context, options: Options) => openConsole(context, options))
}

/** Opens the console. Loads the code that draws screens only now, so that other commands start faster. */
async function openConsole(context: Context, { readOnly, ascii }: Options = {}) {
  const { runConsole } = await import('../console/run-console.tsx')
  return await runConsole(context, { isReadOnly: readOnly === true, isAscii: ascii === true })
}

/** Opens the console for `otpd` without arguments; an error also points a new user at the help. */
export async function openConsoleOrHintAtHelp(context: Context) {
  try {
    return await openConsole(context)
  } catch (thrown) {
    const error = await context.explain(thrown)
    if (!(error instanceof CliError)) throw error
    // Without a server, the first step is to start one, not to log in.
    if (error.code === 'NOT_LOGGED_IN') await context.connect().send({ method: 'GET', path: '/v1/health' })
    const { exitCode, code, message, hints } = error
    throw new CliError(exitCode, code, message, {
      hints: [...hints, 'See all commands with: otpd --help'],
      cause: error,
    })
  }
}
