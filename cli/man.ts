import type { Command, Help } from 'commander'
import { commandPath, shownCommands } from './help.ts'

/**
 * Generates the manual page otpd(1) from the commands and their flags, in the man(7) macros of roff.
 *
 * @param date day of the release, like `2026-11-22`
 */
export function manualPage(program: Command, version: string, date: string): string {
  const help = program.createHelp()
  return [
    `.TH OTPD 1 "${date}" ${quote(`otpd ${version}`)} ${quote('User Commands')}`,
    '.SH NAME',
    `otpd \\- ${escape(lowerFirst(program.description()))}`,
    '.SH SYNOPSIS',
    '.B otpd',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    'One executable with the server',
    '.RB ( "otpd serve" ),',
    'commands for developers and operators, and a console, which',
    '.B otpd',
    'opens without arguments on a terminal.',
    'The guides are in the executable too:',
    '.BR "otpd docs" .',
    '.SH OPTIONS',
    'Every command accepts these.',
    ...flags(program, help),
    '.SH COMMANDS',
    ...leaves(program).flatMap((command) => [
      `.SS ${quote(`${commandPath(command)} ${command.usage().replace('[options]', '').trim()}`.trimEnd())}`,
      escape(upperFirst(sentence(command.description()))),
      ...help
        .visibleArguments(command)
        .filter(({ description }) => description !== '')
        .flatMap((argument) => entry(`<${argument.name()}>`, argument.description)),
      ...flags(command, help),
    ]),
    '.SH EXIT STATUS',
    ...exitStatuses.flatMap(([code, meaning]) => entry(code, meaning)),
    '.SH FILES',
    ...entry('/etc/otpd/otpd.toml', 'settings of a server that runs as a service'),
    ...entry('~/.config/otpd', 'logins of the command line'),
    ...entry('~/.local/share/otpd', 'data of a server that a user starts; of root /var/lib/otpd'),
    '',
  ].join('\n')
}

const exitStatuses = [
  ['0', 'success'],
  ['1', 'server error'],
  ['2', 'usage error'],
  ['3', 'server unreachable'],
  ['4', 'not logged in or not allowed'],
  ['5', 'not found'],
  ['6', 'refused'],
  ['7', 'rate limited'],
  ['8', 'negative result, like a failed check'],
  ['9', 'server cannot start'],
] as const

/** Lists the commands that run something, in the order of the help. */
const leaves = (command: Command): Command[] =>
  shownCommands(command).flatMap((one) => (one.commands.length > 0 ? leaves(one) : [one]))

const flags = (command: Command, help: Help) =>
  help
    .visibleOptions(command)
    .filter(({ long }) => command.parent === null || long !== '--help')
    .flatMap((option) => entry(help.optionTerm(option), option.description))

const entry = (term: string, description: string) => [
  '.TP',
  `.B ${escape(term)}`,
  escape(upperFirst(sentence(description))),
]

const sentence = (text: string) => (/[.!?)]$/.test(text) ? text : `${text}.`)
const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, '')

/** Escapes what roff would read as a request, an escape or a typographic sign. */
const escape = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('’', "'")
    .replaceAll('…', '...')
    .replaceAll('\n', ' ')
    .replace(/^(?=[.'])/, '\\&')

const quote = (text: string) => `"${escape(text).replaceAll('"', '\\(dq')}"`
