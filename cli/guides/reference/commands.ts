import type { Command } from 'commander'
import { commandPath, shownCommands } from '../../help.ts'
import { createProgram } from '../../program.ts'
import type { Io } from '../../terminal/io.ts'

/** Builds the page of all commands from their help texts. */
export function commandReference(): string {
  let printed = ''
  const program = createProgram(
    silentIo((text) => (printed += text)),
    async () => {},
  )
  const helpText = (command: Command) => {
    printed = ''
    command.outputHelp()
    return printed.trim()
  }
  return listCommands(program)
    .map((command) => `## ${commandPath(command)}\n\n\`\`\`text\n${helpText(command)}\n\`\`\``)
    .join('\n\n')
}

/** Lists a command and all below it, groups first. */
const listCommands = (command: Command): Command[] => [
  command,
  ...shownCommands(command).flatMap(listCommands),
]

/** Captures what commands print; nothing else of a process is needed for their help. */
const silentIo = (writeOut: (text: string) => void): Io => ({
  env: {},
  workingDirectory: '/',
  homeDirectory: '/',
  stdinIsTerminal: false,
  stdoutIsTerminal: false,
  stderrIsTerminal: false,
  writeOut,
  writeError: () => {},
  readInput: async () => '',
  askLine: async () => null,
  now: () => 0,
  sleep: async () => {},
})
