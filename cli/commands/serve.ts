import type { Command } from 'commander'
import { examples } from '../help.ts'
import type { RunCommand } from '../context.ts'
import { runServer, type ServeFlags } from '../host/run-server.ts'
import { addConfigFlags } from '../host/config.ts'

/** Registers the serve command. */
export function addServeCommand(program: Command, runCommand: RunCommand) {
  addConfigFlags(program.command('serve').description('run the server'))
    .option('--new', 'create a database where files of an earlier one are left; keeps the files')
    .addHelpText(
      'after',
      examples(
        'otpd serve',
        'otpd serve --domain otp.example.com',
        'otpd serve --listen 127.0.0.1:0 --data-dir ./data',
        'otpd serve --dev --log-format json',
      ),
    )
    .action((flags: ServeFlags, command: Command) =>
      runCommand(command, (context) => runServer(context, flags)),
    )
}
