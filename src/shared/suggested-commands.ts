import { shellWord } from './shell-word.ts'

/** The flags of this run that a suggested command needs too, in order to work on the same server. */
export type HostPlace = { dataDir?: string | undefined; config?: string | undefined }

/** Commands that take `--data-dir` and `--config`, and after them those that take `--config` only. */
const both = [
  'serve|doctor|restore|upgrade|guard status|audit verify|alerts(?: test)?|backup(?: list| verify)?',
  'config (?:show|check)|migrate (?:status|up|to-postgres)|provider (?:list|test)|admin [a-z-]+',
].join('|')
const onlyConfig = 'provider add|template (?:lint|preview)'
const commands = new RegExp(String.raw`\botpd (?:(${both})|${onlyConfig})(?![\w-])`, 'g')

/**
 * Completes the commands that a message suggests with the data directory and the configuration file of this run, so that
 * they work when pasted. A flag that a suggestion already has stays as it is.
 *
 * @param place as given on the command line; what the environment names holds for the pasted command, too
 */
export function completeCommands(text: string, { dataDir, config }: HostPlace): string {
  if (dataDir === undefined && config === undefined) return text
  return text.replaceAll(commands, (command: string, takesBoth: string | undefined, at: number) => {
    const [rest = ''] = text.slice(at + command.length).split(/[;\n]/)
    const flags = [
      ['--data-dir', takesBoth === undefined ? undefined : dataDir],
      ['--config', config],
    ] as const
    const missing = flags.flatMap(([flag, value]) =>
      value === undefined || rest.includes(`${flag} `) ? [] : [` ${flag} ${shellWord(value)}`],
    )
    return command + missing.join('')
  })
}
