import type { Command, Option } from 'commander'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** One command as a shell needs to know it. */
type Place = {
  /** `otpd app create` */
  path: string
  /** Its own words and their other names, and the path that each leads to. */
  children: { words: string[]; name: string; about: string; path: string }[]
  flags: { names: string[]; about: string; takesValue: boolean; values: readonly string[] }[]
  /** What its arguments may be, where that is a closed list. */
  values: readonly string[]
}

/** The script that teaches a shell the commands, flags and closed lists of values of this program. */
export function completionScript(program: Command, shell: Shell): string {
  const help = { names: ['--help', '-h'], about: 'help for this command', takesValue: false, values: [] }
  const places = placesOf(program, 'otpd', [...flagsOf(program), help])
  return { bash, zsh, fish }[shell](places)
}

function placesOf(command: Command, path: string, shared: Place['flags']): Place[] {
  const subs = command.commands
  const children = subs.map((sub) => ({
    words: [sub.name(), ...sub.aliases()],
    name: sub.name(),
    about: sub.description(),
    path: `${path} ${sub.name()}`,
  }))
  const own = command.parent === null ? [] : flagsOf(command)
  const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  return [
    { path, children, flags: [...own, ...shared], values },
    ...subs.flatMap((sub) => placesOf(sub, `${path} ${sub.name()}`, shared)),
  ]
}

const flagsOf = (command: Command): Place['flags'] =>
  command.options.filter(({ hidden }) => !hidden).map(asFlag)

const asFlag = ({ short, long, description, required, optional, argChoices }: Option) => ({
  names: [long, short].filter((name) => name !== undefined),
  about: description,
  takesValue: required || optional,
  values: argChoices ?? [],
})

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** `pattern) body ;;` for each, as bash and zsh write it. */
const cases = (lines: (readonly [patterns: string[], body: string])[], indent: string) =>
  lines.map(([patterns, body]) => `${indent}${patterns.map(quote).join(' | ')}) ${body} ;;`).join('\n')

/** Which command the words so far lead to. */
const steps = (places: Place[]) =>
  places.flatMap(({ path, children }) =>
    children.map(
      (child) => [child.words.map((word) => `${path} ${word}`), `at=${quote(child.path)}`] as const,
    ),
  )

/** What may stand behind a flag that takes a value. */
const valued = (places: Place[], offer: (values: readonly string[]) => string) =>
  places.flatMap(({ path, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map(({ names, values }) => [names.map((name) => `${path} ${name}`), offer(values)] as const),
  )

const namesOf = ({ flags }: Place) => flags.flatMap(({ names }) => names.slice(0, 1))

const bash = (places: Place[]) => `# otpd in bash. In ~/.bashrc: source <(otpd completion bash)
_otpd() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD - 1]}" at=otpd words= flags= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
${cases(steps(places), '      ')}
    esac
  done
  # An empty answer leaves it to the shell, which offers files.
  case "$at $prev" in
${cases(
  valued(places, (values) =>
    values.length > 0 ? `COMPREPLY=($(compgen -W ${quote(values.join(' '))} -- "$cur")); return` : 'return',
  ),
  '    ',
)}
  esac
  case "$at" in
${cases(
  places.map((place) => {
    const words = [...place.children.map(({ name }) => name), ...place.values]
    return [[place.path], `words=${quote(words.join(' '))} flags=${quote(namesOf(place).join(' '))}`]
  }),
  '    ',
)}
  esac
  if [[ $cur == -* ]]; then words=$flags; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _otpd otpd
`

/** `name:what it is`, as _describe reads it. */
const described = (name: string, about: string) => quote(`${name.replaceAll(':', '\\:')}:${about}`)

const zsh = (places: Place[]) => `#compdef otpd
# otpd in zsh. In ~/.zshrc, behind compinit: source <(otpd completion zsh)
_otpd() {
  local at=otpd i
  local -a answers flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
${cases(steps(places), '      ')}
    esac
  done
  case "$at \${words[CURRENT - 1]}" in
${cases(
  valued(places, (values) =>
    values.length > 0 ? `compadd -- ${values.map(quote).join(' ')}; return` : '_files; return',
  ),
  '    ',
)}
  esac
  case "$at" in
${cases(
  places.map((place) => {
    const answers = [
      ...place.children.map(({ name, about }) => described(name, about)),
      ...place.values.map(quote),
    ]
    const flags = place.flags.map(({ names, about }) => described(names[0] ?? '', about))
    return [[place.path], `answers=(${answers.join(' ')}) flags=(${flags.join(' ')})`]
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
# Autoloaded from $fpath this file is the function, and its first call is for an answer.
if [[ "$funcstack[1]" == _otpd ]]; then
  _otpd "$@"
else
  compdef _otpd otpd
fi
`

const fish = (places: Place[]) =>
  [
    '# otpd in fish: otpd completion fish > ~/.config/fish/completions/otpd.fish',
    'function __otpd_at',
    '  set -l at otpd',
    '  for word in (commandline -opc)[2..]',
    '    switch "$at $word"',
    ...steps(places).flatMap(([patterns, step]) => [
      `      case ${patterns.map(fishQuote).join(' ')}`,
      `        set ${step.replace('=', ' ')}`,
    ]),
    '    end',
    '  end',
    '  test "$at" = "$argv[1]"',
    'end',
    'complete -c otpd -e',
    ...places.flatMap((place) => {
      const when = `complete -c otpd -n ${fishQuote(`__otpd_at "${place.path}"`)}`
      return [
        ...place.children.map(({ name, about }) => `${when} -f -a ${name} -d ${fishQuote(about)}`),
        ...(place.values.length > 0 ? [`${when} -f -a ${fishQuote(place.values.join(' '))}`] : []),
        ...place.flags.map(({ names, about, takesValue, values }) =>
          [
            when,
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
