import type { Command } from 'commander'
import { examples } from '../examples.ts'
import type { Run } from '../program.ts'
import { version } from '../version.ts'

export function addVersionCommand(program: Command, run: Run) {
  program
    .command('version')
    .description('print the version of this program')
    .addHelpText('after', examples('otpd version', 'otpd version --json'))
    .action((_options: unknown, command: Command) =>
      run(command, async ({ output }) => {
        const about = {
          version,
          bun: Bun.version,
          platform: `${process.platform}-${process.arch}`,
          api: 'v1',
        }
        output.answer(
          JSON.stringify({ data: about }),
          () => `otpd ${version} (${about.platform}, Bun ${about.bun})`,
        )
      }),
    )
}
