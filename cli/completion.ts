import type { Command, Option } from 'commander'
import { shownCommands } from './help.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** One command, as the completion scripts need it. */
type CommandNode = {
  /** Full path, like `otpd app create`. */
  path: string
  /** Subcommands with their aliases, and the path of each. */
  children: { names: string[]; name: string; about: string; path: string }[]
  flags: { names: string[]; about: string; takesValue: boolean; values: readonly string[] }[]
  /** Allowed values of its arguments, if they are a closed list. */
  values: readonly string[]
}

/** Generates the script that completes commands, flags and closed lists of values in a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const help = { names: ['--help', '-h'], about: 'help for this command', takesValue: false, values: [] }
  const nodes = collectNodes(program, 'otpd', [...visibleFlags(program), help])
  return { bash, zsh, fish }[shell](nodes)
}

function collectNodes(command: Command, path: string, globalFlags: CommandNode['flags']): CommandNode[] {
  const subcommands = shownCommands(command)
  const children = subcommands.map((subcommand) => ({
    names: [subcommand.name(), ...subcommand.aliases()],
    name: subcommand.name(),
    about: subcommand.description(),
    path: `${path} ${subcommand.name()}`,
  }))
  const ownFlags = command.parent === null ? [] : visibleFlags(command)
  const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  return [
    { path, children, flags: [...ownFlags, ...globalFlags], values },
    ...subcommands.flatMap((subcommand) =>
      collectNodes(subcommand, `${path} ${subcommand.name()}`, globalFlags),
    ),
  ]
}

const visibleFlags = (command: Command): CommandNode['flags'] =>
  command.options.filter(({ hidden }) => !hidden).map(toFlag)

const toFlag = ({ short, long, description, required, optional, argChoices }: Option) => ({
  names: [long, short].filter((name) => name !== undefined),
  about: description,
  takesValue: required || optional,
  values: argChoices ?? [],
})

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Formats `pattern) body ;;` clauses for bash and zsh. */
const caseClauses = (lines: (readonly [patterns: string[], body: string])[], indent: string) =>
  lines.map(([patterns, body]) => `${indent}${patterns.map(quote).join(' | ')}) ${body} ;;`).join('\n')

/** Cases that map a command path and the next word to the path of the subcommand. */
const commandCases = (nodes: CommandNode[]) =>
  nodes.flatMap(({ path, children }) =>
    children.map(
      (child) =>
        [child.names.map((commandName) => `${path} ${commandName}`), `at=${quote(child.path)}`] as const,
    ),
  )

/** Cases that map a command path and a flag to the allowed values of that flag. */
const flagValueCases = (nodes: CommandNode[], renderValues: (values: readonly string[]) => string) =>
  nodes.flatMap(({ path, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map(({ names, values }) => [names.map((name) => `${path} ${name}`), renderValues(values)] as const),
  )

const primaryFlagNames = ({ flags }: CommandNode) => flags.flatMap(({ names }) => names.slice(0, 1))

const bash = (nodes: CommandNode[]) => `# otpd in bash. In ~/.bashrc: source <(otpd completion bash)
_otpd() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" at=otpd words= flags= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
${caseClauses(commandCases(nodes), '      ')}
    esac
  done
  # With an empty reply the shell offers files.
  case "$at $prev" in
${caseClauses(
  flagValueCases(nodes, (values) =>
    values.length > 0 ? `COMPREPLY=($(compgen -W ${quote(values.join(' '))} -- "$cur")); return` : 'return',
  ),
  '    ',
)}
  esac
  case "$at" in
${caseClauses(
  nodes.map((node) => {
    const candidates = [...node.children.map(({ name }) => name), ...node.values]
    return [
      [node.path],
      `words=${quote(candidates.join(' '))} flags=${quote(primaryFlagNames(node).join(' '))}`,
    ]
  }),
  '    ',
)}
  esac
  if [[ $cur == -* ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _otpd otpd
`

/** Formats `name:description` for zsh's _describe. */
const describeEntry = (name: string, about: string) => quote(`${name.replaceAll(':', '\\:')}:${about}`)

const zsh = (nodes: CommandNode[]) => `#compdef otpd
# otpd in zsh. In ~/.zshrc, after compinit: source <(otpd completion zsh)
_otpd() {
  local at=otpd i
  local -a answers flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
${caseClauses(commandCases(nodes), '      ')}
    esac
  done
  case "$at \${words[CURRENT - 1]}" in
${caseClauses(
  flagValueCases(nodes, (values) =>
    values.length > 0 ? `compadd -- ${values.map(quote).join(' ')}; return` : '_files; return',
  ),
  '    ',
)}
  esac
  case "$at" in
${caseClauses(
  nodes.map((node) => {
    const answers = [
      ...node.children.map(({ name, about }) => describeEntry(name, about)),
      ...node.values.map(quote),
    ]
    const flags = node.flags.map(({ names, about }) => describeEntry(names[0] ?? '', about))
    return [[node.path], `answers=(${answers.join(' ')}) flags=(${flags.join(' ')})`]
  }),
  '    ',
)}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe -o flag flags
  elif (( \${#answers} )); then
    _describe command answers
  else
    _files
  fi
}
# Autoloaded from $fpath, this file is the body of the function, and the first call must complete at once.
if [[ "$funcstack[1]" == _otpd ]]; then
  _otpd "$@"
else
  compdef _otpd otpd
fi
`

const fish = (nodes: CommandNode[]) =>
  [
    '# otpd in fish: otpd completion fish > ~/.config/fish/completions/otpd.fish',
    'function __otpd_at',
    '  set -l at otpd',
    '  for word in (commandline -opc)[2..]',
    '    switch "$at $word"',
    ...commandCases(nodes).flatMap(([patterns, assignment]) => [
      `      case ${patterns.map(fishQuote).join(' ')}`,
      `        set ${assignment.replace('=', ' ')}`,
    ]),
    '    end',
    '  end',
    '  test "$at" = "$argv[1]"',
    'end',
    'complete -c otpd -e',
    ...nodes.flatMap((node) => {
      const condition = `complete -c otpd -n ${fishQuote(`__otpd_at "${node.path}"`)}`
      return [
        ...node.children.map(({ name, about }) => `${condition} -f -a ${name} -d ${fishQuote(about)}`),
        ...(node.values.length > 0 ? [`${condition} -f -a ${fishQuote(node.values.join(' '))}`] : []),
        ...node.flags.map(({ names, about, takesValue, values }) =>
          [
            condition,
            ...names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)),
            ...(takesValue ? ['-r'] : []),
            ...(values.length > 0 ? [`-f -a ${fishQuote(values.join(' '))}`] : []),
            `-d ${fishQuote(about)}`,
          ].join(' '),
        ),
      ]
    }),
    '',
  ].join('\n')

const fishQuote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
