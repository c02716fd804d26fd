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
 * Runs the command line and gives the exit code; never throws, and leaves ending the process to its caller.
 *
 * @param argv what stands behind `otpd`.
 */
export async function runCommandLine(argv: string[], io: Io): Promise<number> {
  // Commander's own help command looks at one word only.
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
    // Flags cannot be asked for where parsing them is what failed.
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
  // One sentence a line, without ending inside `-p, --project <id|name>`.
  const [message = '', ...suggestions] = error.message.replace(/^error: /, '').split(/\n|(?<=\.) (?=[A-Z])/)
  return usageError(
    message.charAt(0).toUpperCase() + message.slice(1) + (message.endsWith('.') ? '' : '.'),
    ...suggestions.map((suggestion) => suggestion.replaceAll(/^\(|\)$/g, '')),
    `See: ${commandPath(findCommand(program, args))} --help`,
  )
}

/** Every command below its heading, and the words that the commands of one file begin with. */
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
  // It needs to know every command.
  ['More:', [], addCompletionCommand],
  ['More:', ['version'], addVersionCommand],
]

/**
 * The tree of commands.
 *
 * @param firstWord of the command line; where commands begin with it they alone are made, which is most of the time that a
 *   short command takes
 */
export function createProgram(io: Io, runCommand: RunCommand, firstWord?: string) {
  const program = new Command('otpd')
  program
    .description('Issues and verifies one-time passcodes for phone numbers.')
    .usage('<command> [options]')
    .version(version, '-V, --version', 'the version of this program')
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
    .option('--json', "print the API's own JSON")
    .option('-q, --quiet', 'print the answer only, without hints')
    .option('--no-color', 'print without colour')
    .option('--no-input', 'never ask; fail where an answer is missing')
    .option('-y, --yes', 'confirm what would be asked')
    .option('--server <url>', 'the server to talk to (OTPD_SERVER; else the last login)')
    .option('--context <name>', 'the server of that name (OTPD_CONTEXT); see otpd context')
    .option('--timeout <time>', 'how long to wait for an answer, like 10s (OTPD_TIMEOUT; 30s)')
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
  0 done                            5 not found
  1 fault of the server             6 refused
  2 mistyped                        7 too often, wait
  3 no server                       8 done, and the answer is no
  4 not logged in or not allowed    9 the server would not start`
