import type { CliCommand } from './command.ts'
import { manualPage } from '../man.ts'
import { build, version } from '../version.ts'

/** Registers the hidden command that prints the manual page, for packages. */
export function addManCommand(program: CliCommand) {
  program
    .command('man', { hidden: true })
    .description('print the manual page')
    .run(async ({ output }) => {
      const page = manualPage(program, version, build.date ?? new Date().toISOString().slice(0, 10))
      output.printData({ page }, () => page.trimEnd())
    })
}
