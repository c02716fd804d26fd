import type { Command } from 'commander'
import type { Context, RunCommand } from '../context.ts'
import { CliError } from '../terminal/errors.ts'
import { examples } from '../help.ts'

type Options = { readOnly?: true; ascii?: true }

export function addConsoleCommand(program: Command, runCommand: RunCommand) {
  program
    .command('console')
    .description('the full-screen console; also otpd alone, on a terminal')
    .option('--read-only', 'change nothing; keys that would are off')
    .option('--ascii', 'draw with ASCII alone')
    .addHelpText('after', examples('otpd console', 'otpd console --read-only'))
    .action((options: Options, command: Command) =>
      runCommand(command, (context) => openConsole(context, options)),
    )
}

/** What draws screens is loaded here and nowhere else: plain commands need not wait for it. */
async function openConsole(context: Context, { readOnly, ascii }: Options = {}) {
  const { runConsole } = await import('../console/run-console.tsx')
  return await runConsole(context, { isReadOnly: readOnly === true, isAscii: ascii === true })
}

/** For otpd alone: whoever types that may know no other command yet. */
export async function openConsoleOrHintAtHelp(context: Context) {
  try {
    return await openConsole(context)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const { exitCode, code, message, hints } = error
    throw new CliError(exitCode, code, message, {
      hints: [...hints, 'All commands: otpd --help'],
      cause: error,
    })
  }
}
