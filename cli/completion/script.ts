import type { Command, Option } from 'commander'
import { shellQuote } from '../../src/shared/shell-word.ts'
import { describeValue, type CompletionKind, type Value } from './values.ts'
import { shownCommands } from '../help.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** One command, as the completion scripts need it. */
type CommandNode = {
  /** Full path, like `otpd app create`. */
  path: string
  /** Subcommands with their aliases, and the path of each. */
  children: { names: string[]; name: string; about: string; path: string }[]
  flags: { names: string[]; about: string; takesValue: boolean; value: Value }[]
  /** Values of its arguments. */
  value: Value
}

/** Generates the script that completes commands, flags and closed lists of values in a shell. */
export function completionScript(program: Command, shell: Shell): string {
  const value = describeValue('', undefined)
  const help = { names: ['--help', '-h'], about: 'help for this command', takesValue: false, value }
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
  const given = command.registeredArguments.map((argument) =>
    describeValue(argument.name(), argument.argChoices),
  )
  const value = {
    values: given.flatMap(({ values }) => values),
    kind: given.find(({ kind }) => kind !== null)?.kind ?? null,
    isFile: given.some(({ isFile }) => isFile),
  }
  return [
    { path, children, flags: [...ownFlags, ...globalFlags], value },
    ...subcommands.flatMap((subcommand) =>
      collectNodes(subcommand, `${path} ${subcommand.name()}`, globalFlags),
    ),
  ]
}

const visibleFlags = (command: Command): CommandNode['flags'] =>
  command.options.filter(({ hidden }) => !hidden).map(toFlag)

const toFlag = ({ flags, short, long, description, required, optional, argChoices }: Option) => ({
  names: [long, short].filter((name) => name !== undefined),
  about: description,
  takesValue: required || optional,
  value: describeValue(/<(.+)>/.exec(flags)?.[1] ?? '', argChoices, long ?? ''),
})

/** Formats `pattern) body ;;` clauses for bash and zsh. */
const caseClauses = (lines: (readonly [patterns: string[], body: string])[], indent: string) =>
  lines.map(([patterns, body]) => `${indent}${patterns.map(shellQuote).join(' | ')}) ${body} ;;`).join('\n')

/** Cases that map a command path and the next word to the path of the subcommand. */
const commandCases = (nodes: CommandNode[]) =>
  nodes.flatMap(({ path, children }) =>
    children.map(
      (child) =>
        [child.names.map((commandName) => `${path} ${commandName}`), `at=${shellQuote(child.path)}`] as const,
    ),
  )

/** Cases that map a command path and a flag to the allowed values of that flag. */
const flagValueCases = (nodes: CommandNode[], renderValues: (value: Value) => string) =>
  nodes.flatMap(({ path, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map(({ names, value }) => [names.map((name) => `${path} ${name}`), renderValues(value)] as const),
  )

const primaryFlagNames = ({ flags }: CommandNode) => flags.flatMap(({ names }) => names.slice(0, 1))

const bashValue = (words: readonly string[], { kind, isFile, isJoined }: Value) =>
  `words=${shellQuote(words.join(' '))} ask=${kind ?? ''} files=${isFile ? 1 : ''}${isJoined ? ' joined=1' : ''}`

const bash = (nodes: CommandNode[]) => `# otpd in bash. In ~/.bashrc: source <(otpd completion bash)
_otpd() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" at=otpd words= flags= ask= files= joined= head= server= given= kept= i
  local line="\${COMP_LINE-}" split="^(.*[^[:space:]])[[:space:]]+([^[:space:]\\"']*[:=][^[:space:]\\"']*)$"
  COMPREPLY=()
  # Bash splits words at colons and equals signs, and completes the last part only: https://example.com, --app=web.
  line="\${line:0:\${COMP_POINT:-\${#line}}}"
  if [[ $line == *"$cur" && $line =~ $split ]]; then
    if [[ -z \${cur//[:=]/} ]]; then cur=; fi
    kept="\${BASH_REMATCH[2]%"$cur"}" cur="\${BASH_REMATCH[2]}" prev="\${BASH_REMATCH[1]##*[[:space:]]}"
    if [[ $cur == --*=* ]]; then prev="\${cur%%=*}" given="\${cur%%=*}=" cur="\${cur#*=}"; fi
  fi
  # Bash splits words at colons, so that the URL is read from the line.
  if [[ \${COMP_LINE-} =~ [[:space:]](--server|--context)[[:space:]=]+([^[:space:]]+) ]]; then
    server="\${BASH_REMATCH[1]} \${BASH_REMATCH[2]//[\\"\\']/}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
${caseClauses(commandCases(nodes), '      ')}
    esac
  done
  case "$at $prev" in
${caseClauses(
  flagValueCases(nodes, (value) => bashValue(value.values, value)),
  '    ',
)}
    *)
      case "$at" in
${caseClauses(
  nodes.map((node) => {
    const candidates = [...node.children.map(({ name }) => name), ...node.value.values]
    return [
      [node.path],
      `${bashValue(candidates, node.value)} flags=${shellQuote(primaryFlagNames(node).join(' '))}`,
    ]
  }),
  '        ',
)}
      esac ;;
  esac
  if [[ $cur == -* && -n $flags ]]; then words=$flags ask= files=; fi
  if [[ -n $ask ]]; then words="$words $(set -f; otpd __complete "$ask" $server 2>/dev/null)"; fi
  if [[ -n $joined && $cur == *,* ]]; then head="\${cur%,*},"; fi
  COMPREPLY=($(set -f; compgen -P "$given$head" -W "$words" -- "\${cur#"$head"}"))
  if [[ -n $kept ]]; then COMPREPLY=("\${COMPREPLY[@]#"$kept"}"); fi
  if [[ -n $files ]]; then compopt -o default 2>/dev/null || COMPREPLY+=($(compgen -f -- "$cur")); fi
}
complete -F _otpd otpd
`

/** Formats `name:description` for zsh's _describe. */
const describeEntry = (name: string, about: string) => shellQuote(`${name.replaceAll(':', '\\:')}:${about}`)

/** Names of a kind of resources, one a line. */
const askServer = (kind: CompletionKind) => `\${(f)"$(otpd __complete ${kind} $server 2>/dev/null)"}`

const zsh = (nodes: CommandNode[]) => `#compdef otpd
# otpd in zsh. In ~/.zshrc, after compinit: source <(otpd completion zsh)
_otpd() {
  local at=otpd ask= files= before="\${words[CURRENT - 1]}" i
  local -a answers flags server
  for ((i = 2; i < CURRENT; i++)); do
    case "\${words[i]}" in
      --server | --context) server=("\${words[i]}" "\${(Q)words[i + 1]}") ;;
      --server=* | --context=*) server=("\${(Q)words[i]}") ;;
    esac
    case "$at \${words[i]}" in
${caseClauses(commandCases(nodes), '      ')}
    esac
  done
  # --app=web
  if [[ \${words[CURRENT]} == --*=* ]]; then
    before="\${words[CURRENT]%%=*}"
    compset -P 1 '*='
  fi
  case "$at $before" in
${caseClauses(
  flagValueCases(nodes, ({ values, kind, isFile, isJoined }) => {
    const asked = kind === null ? [] : [`compadd -- ${askServer(kind)}`]
    const listed = values.length > 0 ? [`compadd -- ${values.map(shellQuote).join(' ')}`] : []
    const joined = isJoined ? ["compset -P '*,'"] : []
    return [...joined, ...listed, ...asked, ...(isFile ? ['_files'] : []), 'return'].join('; ')
  }),
  '    ',
)}
  esac
  case "$at" in
${caseClauses(
  nodes.map((node) => {
    const answers = [
      ...node.children.map(({ name, about }) => describeEntry(name, about)),
      ...node.value.values.map(shellQuote),
    ]
    const flags = node.flags.map(({ names, about }) => describeEntry(names[0] ?? '', about))
    const { kind, isFile } = node.value
    const rest = `${kind === null ? '' : ` ask=${kind}`}${isFile ? ' files=1' : ''}`
    return [[node.path], `answers=(${answers.join(' ')}) flags=(${flags.join(' ')})${rest}`]
  }),
  '    ',
)}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then
    _describe -o flag flags
  else
    if [[ -n $ask ]]; then answers+=(\${\${(f)"$(otpd __complete $ask $server 2>/dev/null)"}//:/\\\\:}); fi
    if (( \${#answers} )); then _describe command answers; fi
    if [[ -n $files ]]; then _files; fi
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
    'function __otpd_server',
    '  set -l words (commandline -opc)',
    '  for i in (seq (count $words))',
    '    switch $words[$i]',
    '      case --server --context',
    '        string join -- \\n $words[$i..(math $i + 1)]',
    "      case '--server=*' '--context=*'",
    '        echo $words[$i]',
    '    end',
    '  end',
    'end',
    'complete -c otpd -e',
    ...nodes.flatMap((node) => {
      const condition = `complete -c otpd -n ${fishQuote(`__otpd_at "${node.path}"`)}`
      return [
        ...node.children.map(({ name, about }) => `${condition} -f -a ${name} -d ${fishQuote(about)}`),
        ...fishValues(node.value).map((words) => `${condition} -f -a ${words}`),
        ...(node.value.isFile || node.children.length > 0 ? [] : [`${condition} -f`]),
        ...node.flags.map(({ names, about, takesValue, value }) =>
          [
            condition,
            ...names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)),
            ...(takesValue ? [value.isFile ? '-r' : '-x'] : []),
            ...fishValues(value).map((words) => `-a ${words}`),
            `-d ${fishQuote(about)}`,
          ].join(' '),
        ),
      ]
    }),
    '',
  ].join('\n')

/** Words that complete a value in fish. */
function fishValues({ values, kind, isJoined }: Value): string[] {
  const listed = values.length === 0 ? [] : [values.join(' ')]
  const asked = kind === null ? [] : [`otpd __complete ${kind} (__otpd_server) 2>/dev/null`]
  if (!isJoined) return [...listed, ...asked.map((command) => `(${command})`)].map(fishQuote)
  const commands = [...listed.map((words) => `string split " " ${fishQuote(words)}`), ...asked]
  return commands.map((command) => fishQuote(`(__fish_complete_list , ${fishQuote(command)})`))
}

const fishQuote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
