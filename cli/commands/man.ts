import type { Command } from 'commander'
import type { RunCommand } from '../context.ts'
import { manualPage } from '../man.ts'
import { build, version } from '../version.ts'

/** Registers the hidden command that prints the manual page, for packages. */
export function addManCommand(program: Command, runCommand: RunCommand) {
  program
    .command('man', { hidden: true })
    .description('print the manual page')
    .action((_options: unknown, command: Command) =>
      runCommand(command, async ({ output }) => {
        const page = manualPage(program, version, build.date ?? new Date().toISOString().slice(0, 10))
        output.printResult(JSON.stringify({ data: { page } }), () => page.trimEnd())
      }),
    )
}
