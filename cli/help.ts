import type { Command, Help, HelpConfiguration } from 'commander'

/** The commands first, then what they take; the flags that every command shares are told once, by `otpd --help`. */
export const helpConfiguration: HelpConfiguration = {
  formatHelp,
  commandUsage: (command) =>
    `${commandPath(command)} ${command.commands.length > 0 ? '<command>' : command.usage()}`,
  // What an option may be is in its own words.
  optionDescription: (option) => option.description,
  styleTitle: (title) => `\u001b[1m${title}\u001b[22m`,
}

function formatHelp(command: Command, help: Help) {
  const isRoot = command.parent === null
  const sections: [title: string, lines: [term: string, description: string][]][] = [
    ...groupsOf(command, help),
    [
      'Arguments:',
      help.visibleArguments(command).map((one) => [help.argumentTerm(one), help.argumentDescription(one)]),
    ],
    [
      isRoot ? 'Flags of every command:' : 'Flags:',
      help.visibleOptions(command).map((one) => [help.optionTerm(one), help.optionDescription(one)]),
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
  const about = help.commandDescription(command)
  return [
    `${about.charAt(0).toUpperCase()}${about.slice(1)}${about.endsWith('.') ? '' : '.'}`,
    `${help.styleTitle('Usage:')} ${help.commandUsage(command)}`,
    ...blocks,
    isRoot ? '' : 'Flags of every command, like --json and --server: otpd --help\n',
  ]
    .filter(Boolean)
    .join('\n\n')
}

function groupsOf(command: Command, help: Help) {
  const groups = new Map<string, [string, string][]>()
  for (const sub of help.visibleCommands(command)) {
    const title = sub.helpGroup() || 'Commands:'
    groups.set(title, [...(groups.get(title) ?? []), [sub.name(), help.subcommandDescription(sub)]])
  }
  return [...groups]
}

/** `otpd app create` */
export function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`
}

/** The deepest command that these words name, for pointing at its help. */
export function findCommand(program: Command, args: string[]): Command {
  const [word, ...rest] = args.filter((arg) => !arg.startsWith('-'))
  const found = program.commands.find(
    (sub) => word !== undefined && [sub.name(), ...sub.aliases()].includes(word),
  )
  return found === undefined ? program : findCommand(found, rest)
}
