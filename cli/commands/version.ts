import type { Command } from 'commander'
import { examples } from '../help.ts'
import type { RunCommand } from '../context.ts'
import { version } from '../version.ts'

/** Registers the version command. */
export function addVersionCommand(program: Command, runCommand: RunCommand) {
  program
    .command('version')
    .description('print the version of this program')
    .addHelpText('after', examples('otpd version', 'otpd version --json'))
    .action((_options: unknown, command: Command) =>
      runCommand(command, async ({ output }) => {
        const versionInfo = {
          version,
          bun: Bun.version,
          platform: `${process.platform}-${process.arch}`,
          api: 'v1',
        }
        output.printResult(
          JSON.stringify({ data: versionInfo }),
          () => `otpd ${version} (${versionInfo.platform}, Bun ${versionInfo.bun})`,
        )
      }),
    )
}
