import { Command, CommanderError } from 'commander'
import { addAccountCommands } from './commands/account.ts'
import { addAdminCommands } from './commands/admin.ts'
import { addAnalyticsCommand } from './commands/analytics.ts'
import { addApiCommand } from './commands/api.ts'
import { addAppCommands } from './commands/app.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addBackupCommands } from './commands/backup.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addConfigCommands } from './commands/config.ts'
import { addConsoleCommand, openConsoleOrHintAtHelp } from './commands/console.ts'
import { addContextCommands } from './commands/context.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addGuardCommands } from './commands/guard.ts'
import { addHealthCommand } from './commands/health.ts'
import { addInboxCommand } from './commands/inbox.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addMigrateCommands } from './commands/migrate.ts'
import { addOtpCommands } from './commands/otp.ts'
import { addProfileCommands } from './commands/profile.ts'
import { addProjectCommands } from './commands/project.ts'
import { addProviderCommands } from './commands/provider.ts'
import { addRotateCommand } from './commands/rotate.ts'
import { addServeCommand } from './commands/serve.ts'
import { addTemplateCommands } from './commands/template.ts'
import { addUserCommands } from './commands/user.ts'
import { addVersionCommand } from './commands/version.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { createContext, type GlobalFlags, type RunCommand } from './context.ts'
import { exitCodes, usageError } from './terminal/errors.ts'
import { addNounExamples, commandPath, examples, findCommand, helpConfiguration } from './help.ts'
import type { Io } from './terminal/io.ts'
import { createOutput, exitCodeForError } from './terminal/output.ts'
import { version } from './version.ts'

/**
 * Runs the command line and returns the exit code. Never throws, and leaves ending the process to the caller.
 *
 * @param argv arguments after `otpd`
 */
export async function runCommandLine(argv: string[], io: Io): Promise<number> {
  // Commander's own help command takes one name only, not `otpd help app create`.
  const args = argv[0] === 'help' && argv.length > 2 ? [...argv.slice(1), '--help'] : argv
  let exitCode: number = exitCodes.done
  const runCommand: RunCommand = async (command, body) => {
    const flags = command.optsWithGlobals<GlobalFlags>()
    exitCode = (await body(createContext(io, flags, createOutput(io, flags)))) ?? exitCodes.done
  }
  const program = createProgram(io, runCommand, args[0])
  try {
    if (args.length > 0) await program.parseAsync(args, { from: 'user' })
    else if (io.stdinIsTerminal && io.stdoutIsTerminal)
      return await openConsoleOrHintAtHelp(createContext(io, {}, createOutput(io, {})))
    else program.outputHelp()
    return exitCode
  } catch (error) {
    // Parsing may be what failed, so look for the flags in the raw arguments.
    const hasFlag = (...names: string[]) => args.some((arg) => names.includes(arg))
    const output = createOutput(io, { json: hasFlag('--json'), color: !hasFlag('--no-color') })
    if (!(error instanceof CommanderError)) {
      output.printError(error)
      return exitCodeForError(error)
    }
    if (error.exitCode === 0) return exitCodes.done
    if (error.code !== 'commander.help') output.printError(toUsageError(error, program, args))
    return exitCodes.usage
  }
}

function toUsageError(error: CommanderError, program: Command, args: string[]) {
  // Splits the message into one sentence per line, but not inside `-p, --project <id|name>`.
  const [message = '', ...suggestions] = error.message.replace(/^error: /, '').split(/\n|(?<=\.) (?=[A-Z])/)
  return usageError(
    message.charAt(0).toUpperCase() + message.slice(1) + (message.endsWith('.') ? '' : '.'),
    ...suggestions.map((suggestion) => suggestion.replaceAll(/^\(|\)$/g, '')),
    `See: ${commandPath(findCommand(program, args))} --help`,
  )
}

/** Command files in the order of the help: heading, names of their top-level commands, and how to register them. */
const commandFiles: [
  heading: string,
  commandNames: string[],
  register: (program: Command, runCommand: RunCommand) => void,
][] = [
  ['Server:', ['serve'], addServeCommand],
  ['Server:', ['health'], addHealthCommand],
  ['Server:', ['doctor'], addDoctorCommand],
  ['Server:', ['config'], addConfigCommands],
  ['Server:', ['admin'], addAdminCommands],
  ['Server:', ['migrate'], addMigrateCommands],
  ['Server:', ['backup', 'restore'], addBackupCommands],
  ['Server:', ['provider'], addProviderCommands],
  ['Server:', ['guard'], addGuardCommands],
  ['Server:', ['template', 'templates'], addTemplateCommands],
  ['Account:', ['login', 'logout', 'whoami', 'auth'], addAccountCommands],
  ['Account:', ['context'], addContextCommands],
  ['Account:', ['profile'], addProfileCommands],
  ['Work:', ['project', 'projects'], addProjectCommands],
  ['Work:', ['app', 'apps'], addAppCommands],
  ['Work:', ['rotate'], addRotateCommand],
  ['Work:', ['otp'], addOtpCommands],
  ['Work:', ['inbox'], addInboxCommand],
  ['Work:', ['webhook', 'webhooks'], addWebhookCommands],
  ['Work:', ['user', 'users'], addUserCommands],
  ['Work:', ['logs'], addLogsCommand],
  ['Work:', ['audit'], addAuditCommand],
  ['Work:', ['analytics'], addAnalyticsCommand],
  ['Work:', ['console'], addConsoleCommand],
  ['More:', ['api'], addApiCommand],
  // Without a name, so that `otpd completion` builds the whole tree: the script lists every command.
  ['More:', [], addCompletionCommand],
  ['More:', ['version'], addVersionCommand],
]

/**
 * Builds the tree of commands.
 *
 * @param firstWord first word of the command line. If it is the name of a command, only that command's file is
 *   registered: building the whole tree takes most of the time of a short command.
 */
export function createProgram(io: Io, runCommand: RunCommand, firstWord?: string) {
  const program = new Command('otpd')
  program
    .description('Issues and verifies one-time passcodes for phone numbers.')
    .usage('<command> [options]')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'help for a command')
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => io.writeOut(text),
      writeErr: (text) => io.writeError(text),
      outputError: () => {},
      getOutHasColors: () => io.stdoutIsTerminal && !io.env.NO_COLOR,
      getErrHasColors: () => io.stderrIsTerminal && !io.env.NO_COLOR,
    })
    .configureHelp(helpConfiguration)
    .option('--json', "print the API's JSON response")
    .option('-q, --quiet', 'print only the result, without hints')
    .option('--no-color', 'print without colour')
    .option('--no-input', 'never prompt; fail if a value is missing')
    .option('-y, --yes', 'skip confirmation prompts')
    .option('--server <url>', 'server to talk to (OTPD_SERVER; default: the last login)')
    .option('--context <name>', 'named server to talk to (OTPD_CONTEXT); see otpd context')
    .option('--timeout <time>', 'how long to wait for a response, like 10s (OTPD_TIMEOUT; default 30s)')
    .addHelpText('after', examples('otpd serve', 'otpd login', 'otpd project create storefront'))
    .addHelpText('after', exitCodeHelp)

  const requested = commandFiles.filter(
    ([, commandNames]) => firstWord !== undefined && commandNames.includes(firstWord),
  )
  for (const [heading, , register] of requested.length > 0 ? requested : commandFiles) {
    program.commandsGroup(heading)
    register(program, runCommand)
  }
  program.helpCommand('help [command]', 'help for a command')
  for (const noun of program.commands) {
    noun.helpCommand(false)
    addNounExamples(noun)
  }
  return program
}

const exitCodeHelp = `
Exit codes:
  0 success                         5 not found
  1 server error                    6 refused
  2 usage error                     7 rate limited
  3 server unreachable              8 negative result, like a failed check
  4 not logged in or not allowed    9 server cannot start`
