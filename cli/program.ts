import { CommanderError, type Command } from 'commander'
import { CliCommand } from './commands/command.ts'
import { addAccountCommands } from './commands/account.ts'
import { addAdminCommands } from './commands/admin.ts'
import { addAlertsCommands } from './commands/alerts.ts'
import { addAnalyticsCommand } from './commands/analytics.ts'
import { addApiCommand } from './commands/api.ts'
import { addAppCommands } from './commands/app.ts'
import { addRotateCommand } from './commands/app-credentials.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addBackupCommands } from './commands/backup.ts'
import { addCompleteCommand, addCompletionCommand } from './commands/completion.ts'
import { addConfigCommands } from './commands/config.ts'
import { addConsoleCommand, openConsoleOrHintAtHelp } from './commands/console.ts'
import { addContextCommands } from './commands/context.ts'
import { addDemoCommand } from './commands/demo.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addGuardCommands } from './commands/guard.ts'
import { addHealthCommand } from './commands/health.ts'
import { addInboxCommand } from './commands/inbox.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addManCommand } from './commands/man.ts'
import { addMigrateCommands } from './commands/migrate.ts'
import { addOtpCommands } from './commands/otp.ts'
import { addProfileCommands } from './commands/profile.ts'
import { addProjectCommands } from './commands/project.ts'
import { addProviderCommands } from './commands/provider.ts'
import { addRoutesCommands } from './commands/routes.ts'
import { addRestoreCommand } from './commands/restore.ts'
import { addServeCommand } from './commands/serve.ts'
import { addTemplateCommands } from './commands/template.ts'
import { addTokenCommands } from './commands/token.ts'
import { addUpgradeCommand } from './commands/upgrade.ts'
import { addUserCommands } from './commands/user.ts'
import { addVersionCommand } from './commands/version.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { createContext, type GlobalFlags, type RunCommand } from './context.ts'
import { CliError, exitCodes, usageError } from './terminal/errors.ts'
import { nameFlags } from './terminal/field-flags.ts'
import {
  completeHelp,
  commandPath,
  findCommand,
  helpConfiguration,
  intendedCommands,
  similarCommands,
} from './help.ts'
import type { Io } from './terminal/io.ts'
import type { HostPlace } from '../src/shared/suggested-commands.ts'
import { similarWords } from './terminal/similar.ts'
import { createOutput, exitCodeForError, wantsColor } from './terminal/output.ts'
import { version } from './version.ts'

/**
 * Runs the command line and returns the exit code. Never throws, and leaves ending the process to the caller.
 *
 * @param argv arguments after `otpd`
 */
export async function runCommandLine(argv: string[], io: Io): Promise<number> {
  let exitCode: number = exitCodes.done
  let place: HostPlace = {}
  const runCommand: RunCommand = async (command, body) => {
    const flags = command.optsWithGlobals<GlobalFlags & HostPlace>()
    place = { dataDir: flags.dataDir, config: flags.config }
    const context = createContext(io, flags, createOutput(io, flags))
    try {
      exitCode = (await body(context)) ?? exitCodes.done
    } catch (thrown) {
      const error = await context.explain(thrown)
      throw error instanceof CliError ? nameFlags(error, command) : error
    }
  }
  const program = createProgram(io, runCommand, argv[0])
  const args = helpArguments(program, argv)
  try {
    if (args !== argv) requireCommands(program, args)
    const { operands, unknown } = program.parseOptions(args)
    if (operands.length > 0 || unknown.length > 0) {
      await program.parseAsync(args, { from: 'user' })
      return exitCode
    }
    const flags = program.opts<GlobalFlags>()
    if (io.stdinIsTerminal && io.stdoutIsTerminal)
      return await openConsoleOrHintAtHelp(createContext(io, flags, createOutput(io, flags)))
    program.outputHelp()
    return exitCodes.done
  } catch (error) {
    // Parsing may be what failed, so look for the flags in the raw arguments.
    const hasFlag = (...names: string[]) => args.some((arg) => names.includes(arg))
    const output = createOutput(io, { json: hasFlag('--json'), color: !hasFlag('--no-color'), ...place })
    if (!(error instanceof CommanderError)) {
      output.printError(error)
      return exitCodeForError(error)
    }
    // --help and --version end as an error with code 0.
    if (error.exitCode === 0) return exitCodes.done
    // A group without a subcommand: commander has already printed its help, but not with --json.
    if (error.code === 'commander.help' && !output.json) return exitCodes.usage
    output.printError(toUsageError(error, program, args))
    return exitCodes.usage
  }
}

/** Turns `help app create` and `app help create` into `app create --help`, which commander understands. */
function helpArguments(program: Command, argv: string[]) {
  const [noun = '', word, ...rest] = argv
  if (noun === 'help') return [...argv.slice(1), '--help']
  const isGroup = findCommand(program, [noun]).commands.length > 0
  return word === 'help' && isGroup ? [noun, ...rest, '--help'] : argv
}

/** @throws usage error for a word that names no command, which commander would pass over */
function requireCommands(program: Command, args: string[]) {
  let at = program
  for (const word of args.filter((arg) => !arg.startsWith('-'))) {
    if (at.commands.length === 0) return
    const next = findCommand(at, [word])
    if (next === at) throw unknownCommandError(program, word, at)
    at = next
  }
}

function unknownCommandError(program: Command, word: string, at: Command) {
  const intended = intendedCommands(program, word, at.name())
  const own = similarWords(
    word,
    at.commands.flatMap((command) => [command.name(), ...command.aliases()]),
  ).map((name) => commandPath(findCommand(at, [name])))
  const near = [...own, ...intended]
  const meant = near.length > 0 ? near : similarCommands(program, word)
  return usageError(
    `Unknown command '${word}'.`,
    ...[...new Set(meant)].map((path) => `Did you mean: ${path}`),
    `See: ${commandPath(at)} --help`,
  )
}

function toUsageError(error: CommanderError, program: Command, args: string[]) {
  const at = findCommand(program, args)
  const [, unknownWord] = /unknown command '(.*)'/.exec(error.message) ?? []
  if (unknownWord !== undefined) return unknownCommandError(program, unknownWord, at)
  const see = `See: ${commandPath(at)} --help`
  if (error.code === 'commander.help') return usageError('Missing <command>.', see)
  const missing = missingValues(at)
  if (/^commander\.missing(MandatoryOptionValue|Argument)$/.test(error.code) && missing.length > 0)
    return usageError(`Missing ${missing.join(', ').replace(/, (?=[^,]*$)/, ' and ')}.`, see)
  const choice = invalidChoice(error.message)
  if (choice !== null) return usageError(choice, see)
  // Splits the message into one sentence per line, but not inside `-p, --project <id|name>`.
  const [message = '', ...suggestions] = error.message.replace(/^error: /, '').split(/\n|(?<=\.) (?=[A-Z])/)
  return usageError(
    message.charAt(0).toUpperCase() + message.slice(1) + (message.endsWith('.') ? '' : '.'),
    ...suggestions.map((suggestion) => suggestion.replaceAll(/^\(|\)$/g, '')),
    see,
  )
}

/** Words commander's error about a value that is not one of the choices as the API's errors; null for any other error. */
function invalidChoice(message: string) {
  const [, flag, name, choices] =
    /^error: (?:option '(?:-\w, )?(--[\w-]+).*|.* invalid for argument '(.*)')\. Allowed choices are (.*)\.$/.exec(
      message,
    ) ?? []
  return choices === undefined ? null : `${flag ?? `<${name}>`}: Expected one of ${choices}.`
}

/** Lists all arguments and options that a command requires and did not get, as its help writes them. */
const missingValues = (command: Command) => [
  ...command.registeredArguments
    .filter(({ required }, index) => required && command.args[index] === undefined)
    .map((argument) => `<${argument.name()}>`),
  ...command.options
    .filter((option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined)
    .map(({ flags }) => flags.replace(/^-\w, /, '')),
]

type CommandFile = {
  /** Its top-level commands, with their other names. */
  names: string[]
  register: (program: CliCommand) => void
}

/** The command files by the headings of the help, in its order. */
const commandGroups: { heading: string; files: CommandFile[] }[] = [
  {
    heading: 'Server:',
    files: [
      { names: ['serve'], register: addServeCommand },
      { names: ['health'], register: addHealthCommand },
      { names: ['doctor'], register: addDoctorCommand },
      { names: ['config'], register: addConfigCommands },
      { names: ['admin'], register: addAdminCommands },
      { names: ['migrate'], register: addMigrateCommands },
      { names: ['backup'], register: addBackupCommands },
      { names: ['restore'], register: addRestoreCommand },
      { names: ['upgrade'], register: addUpgradeCommand },
      { names: ['provider'], register: addProviderCommands },
      { names: ['guard'], register: addGuardCommands },
      { names: ['alerts'], register: addAlertsCommands },
      { names: ['template', 'templates'], register: addTemplateCommands },
    ],
  },
  {
    heading: 'Account:',
    files: [
      { names: ['login', 'logout', 'whoami', 'auth'], register: addAccountCommands },
      { names: ['context'], register: addContextCommands },
      { names: ['profile'], register: addProfileCommands },
      { names: ['token', 'tokens'], register: addTokenCommands },
    ],
  },
  {
    heading: 'Work:',
    files: [
      { names: ['project', 'projects'], register: addProjectCommands },
      { names: ['app', 'apps'], register: addAppCommands },
      { names: ['rotate'], register: addRotateCommand },
      { names: ['otp'], register: addOtpCommands },
      { names: ['inbox'], register: addInboxCommand },
      { names: ['webhook', 'webhooks'], register: addWebhookCommands },
      { names: ['user', 'users'], register: addUserCommands },
      { names: ['logs'], register: addLogsCommand },
      { names: ['audit'], register: addAuditCommand },
      { names: ['routes'], register: addRoutesCommands },
      { names: ['analytics'], register: addAnalyticsCommand },
      { names: ['console'], register: addConsoleCommand },
    ],
  },
  {
    heading: 'More:',
    files: [
      { names: ['demo'], register: (program) => addDemoCommand(program, runCommandLine) },
      { names: ['docs'], register: addDocsCommand },
      { names: ['api'], register: addApiCommand },
      // Without a name, so that these build the whole tree: the script and the page list every command.
      { names: [], register: addCompletionCommand },
      { names: ['__complete'], register: addCompleteCommand },
      { names: [], register: addManCommand },
      { names: ['version'], register: addVersionCommand },
    ],
  },
]

/**
 * Builds the tree of commands.
 *
 * @param firstWord first word of the command line. If it is the name of a command, only that command's file is
 *   registered: building the whole tree takes most of the time of a short command.
 */
export function createProgram(io: Io, runCommand: RunCommand, firstWord?: string) {
  const program = new CliCommand('otpd', runCommand)
  program
    .description('Issues and verifies one-time passcodes for phone numbers.')
    .usage('<command> [options]')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'help for a command')
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => io.writeOut(text),
      // Commander's help of a group whose subcommand is missing; with --json, stderr has errors in JSON only.
      writeErr: (text) => {
        if (program.opts<GlobalFlags>().json !== true) io.writeError(text)
      },
      // `runCommandLine` prints errors itself, with hints or as JSON.
      outputError: () => {},
      getOutHasColors: () => wantsColor(io, program.opts<GlobalFlags>(), io.stdoutIsTerminal),
      getErrHasColors: () => wantsColor(io, program.opts<GlobalFlags>(), io.stderrIsTerminal),
    })
    .configureHelp(helpConfiguration)
    .option('--json', "print the API's JSON response")
    .option('-q, --quiet', 'print only the result, without hints; with create, list and get only ids')
    .option('--no-color', 'print without colour')
    .option('--no-input', 'never prompt; fail if a value is missing')
    .option('-y, --yes', 'skip confirmation prompts')
    .option('--server <url>', 'server to talk to (OTPD_SERVER; default: the last login)')
    .option('--context <name>', 'named server to talk to (OTPD_CONTEXT); see otpd context')
    .option('--timeout <time>', 'how long to wait for a response, like 10s (OTPD_TIMEOUT; default 30s)')
    .examples('otpd serve', 'otpd login', 'otpd project create shop')
    .addHelpText('after', exitCodeHelp)

  const isRequested = ({ names }: CommandFile) => firstWord !== undefined && names.includes(firstWord)
  const isKnown = commandGroups.some(({ files }) => files.some(isRequested))
  for (const { heading, files } of commandGroups) {
    program.commandsGroup(heading)
    for (const file of files) if (!isKnown || isRequested(file)) file.register(program)
  }
  program.helpCommand('help [command]', 'help for a command')
  for (const noun of program.commands) completeHelp(noun)
  return program
}

const exitCodeHelp = `
Exit codes:
  0 success                         5 not found
  1 server error                    6 refused
  2 usage error                     7 rate limited
  3 server unreachable              8 negative result, like a failed check
  4 not logged in or not allowed    9 server cannot start`
