import type { Command } from 'commander'
import type { Flags } from '../../src/config/config.ts'
import { exitCodes } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import type { RunCommand } from '../context.ts'
import { addConfigFlags, loadServerConfig, requireConfig } from '../host/config.ts'
import { printable } from '../terminal/text.ts'

/** Registers the commands for the server's configuration. */
export function addConfigCommands(program: Command, runCommand: RunCommand) {
  const config = program.command('config').description("the server's configuration on this machine")

  addConfigFlags(config.command('show').description('show every setting, its value and its source'))
    .addHelpText('after', examples('otpd config show', 'otpd config show --listen 127.0.0.1:9090 --json'))
    .action((flags: Flags, command: Command) =>
      runCommand(command, async ({ output }) => {
        const loaded = await loadServerConfig(flags)
        const { settingRows } = await import('../../src/server/bundle.ts')
        output.printResult(JSON.stringify({ data: loaded.settings }), () =>
          output.formatTable(
            ['SETTING', 'VALUE', 'SOURCE'],
            settingRows(loaded.settings).map((row) => row.map(printable)),
          ),
        )
        requireConfig(loaded, exitCodes.negative)
      }),
    )

  addConfigFlags(config.command('check').description('check that the configuration is valid'))
    .addHelpText('after', examples('otpd config check'))
    .action((flags: Flags, command: Command) =>
      runCommand(command, async ({ output }) => {
        const loaded = await loadServerConfig(flags)
        const { configFile } = requireConfig(loaded, exitCodes.negative)
        const result = { valid: true, configFile }
        output.printResult(
          JSON.stringify({ data: result }),
          () =>
            `${output.paint.green('✓')} The configuration is valid (${configFile ?? 'no file; environment and defaults'})`,
        )
      }),
    )
}
