import { EventEmitter } from 'node:events'
import type { Command, Help, HelpConfiguration } from 'commander'
import { similarWords } from './terminal/similar.ts'

/** Lists commands, then arguments and flags. Only `otpd --help` lists the global flags. */
export const helpConfiguration: HelpConfiguration = {
  formatHelp,
  commandUsage: (command) => {
    const own = `${commandPath(command)} ${command.usage().replace(' [command]', '')}`
    const below = `${commandPath(command)} <command>`
    if (command.commands.length === 0) return own
    return actsItself(command) ? `${own}\n       ${below}` : below
  },
  // Our descriptions name choices and defaults themselves; commander would append them.
  optionDescription: ({ description, mandatory }) => `${description}${mandatory ? ' (required)' : ''}`,
  argumentDescription: (argument) => argument.description,
  styleTitle: (title) => `\u001b[1m${title}\u001b[22m`,
}

/**
 * Tells whether a command with subcommands also does something without one, as `otpd backup` and `otpd audit`.
 * Commander's types do not have the handler that `action` sets.
 */
const actsItself = (command: Command) => typeof Reflect.get(command, '_actionHandler') === 'function'

function formatHelp(command: Command, help: Help) {
  const isRoot = command.parent === null
  const sections: [title: string, lines: [term: string, description: string][]][] = [
    ...commandGroups(command, help),
    [
      'Arguments:',
      help
        .visibleArguments(command)
        .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
    ],
    [
      isRoot ? 'Global flags:' : 'Flags:',
      help.visibleOptions(command).map((option) => [help.optionTerm(option), help.optionDescription(option)]),
    ],
  ]
  const termWidth = Math.max(...sections.flatMap(([, lines]) => lines.map(([term]) => term.length)))
  const blocks = sections
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) =>
      [
        help.styleTitle(title),
        ...lines.map((line) => help.formatItem(line[0], termWidth, line[1], help)),
      ].join('\n'),
    )
  const description = help.commandDescription(command)
  const sentence = `${description.charAt(0).toUpperCase()}${description.slice(1)}${description.endsWith('.') ? '' : '.'}`
  return [
    help.boxWrap(sentence, help.helpWidth ?? 80),
    `${help.styleTitle('Usage:')} ${help.commandUsage(command)}`,
    ...blocks,
    isRoot
      ? 'Aliases: ls (list), show (get), new (create), rm (delete).\n'
      : 'For global flags like --json and --server, see: otpd --help\n',
  ].join('\n\n')
}

/** Formats the `Examples:` part of a help text. The tests run every line of it in a shell. */
export const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`

/** Adds the first example of its first three commands to the help of each command group without examples of its own. */
export function completeHelp(noun: Command) {
  // `otpd help app` and `otpd app --help` are enough: `otpd app help` would add a line to the help of every noun.
  noun.helpCommand(false)
  for (const command of noun.commands) completeHelp(command)
  if (noun.commands.length === 0 || actsItself(noun)) return
  noun.addHelpText('after', () => examples(...noun.commands.slice(0, 3).map(firstExample)))
}

function firstExample(command: Command) {
  let help = ''
  // Commander's commands are event emitters, but its types do not say so.
  if (command instanceof EventEmitter)
    command.emit('afterHelp', { command, error: false, write: (text: string) => void (help += text) })
  return /\n {2}(.+)/.exec(help)?.[1] ?? ''
}

function commandGroups(command: Command, help: Help) {
  const groups = new Map<string, [string, string][]>()
  for (const subcommand of help.visibleCommands(command)) {
    const title = subcommand.helpGroup() || 'Commands:'
    groups.set(title, [
      ...(groups.get(title) ?? []),
      [subcommand.name(), help.subcommandDescription(subcommand)],
    ])
  }
  return [...groups]
}

/** Returns the full path of a command, like `otpd app create`. */
export function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`
}

/** Lists the subcommands that help, completion and the manual page show. */
export const shownCommands = (command: Command) =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((subcommand) => command.commands.includes(subcommand))

/** Finds the deepest command that these arguments name, to point at its help. */
export function findCommand(program: Command, args: string[]): Command {
  const [commandName, ...otherArgs] = args.filter((arg) => !arg.startsWith('-'))
  const subcommand = program.commands.find(
    (candidate) =>
      commandName !== undefined && [candidate.name(), ...candidate.aliases()].includes(commandName),
  )
  return subcommand === undefined ? program : findCommand(subcommand, otherArgs)
}

/** Words that other programs use for a command, alone or behind a noun. */
const synonyms: Partial<Record<string, string>> = {
  'auth login': 'login',
  'auth logout': 'logout',
  'auth status': 'whoami',
  'context current': 'whoami',
  'webhook resend': 'webhook redeliver',
  'webhook secret': 'app webhook-secret',
  'webhook trigger': 'webhook test',
  '2fa': 'profile totp',
  events: 'logs',
  mfa: 'profile totp',
  register: 'login',
  run: 'serve',
  server: 'serve',
  start: 'serve',
  signin: 'login',
  signup: 'login',
  status: 'health',
  tail: 'logs --tail',
  trigger: 'webhook test',
  ui: 'console',
}

const namesOf = (command: Command) => [command.name(), ...command.aliases()]

/**
 * Finds the commands that a person may have meant by an unknown word: a synonym, or a subcommand of that name of any
 * noun (`send` is `otpd otp send`).
 *
 * @param noun the command in whose place the word was; undefined at the top
 */
export function intendedCommands(program: Command, word: string, noun?: string): string[] {
  const synonym = synonyms[`${noun} ${word}`] ?? synonyms[word]
  if (synonym !== undefined) return [`otpd ${synonym}`]
  const daily = (noun: Command) => (noun.helpGroup() === 'Work:' ? 0 : 1)
  return program.commands
    .toSorted((a, b) => daily(a) - daily(b))
    .flatMap((noun) => noun.commands.filter((command) => namesOf(command).includes(word)).map(commandPath))
}

/** As `intendedCommands`, for a mistyped word. */
export function similarCommands(program: Command, word: string): string[] {
  const words = program.commands.flatMap((noun) => noun.commands.flatMap(namesOf))
  return similarWords(word, [...Object.keys(synonyms), ...words]).flatMap((similar) =>
    intendedCommands(program, similar),
  )
}
