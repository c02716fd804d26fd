import type { CliCommand } from './command.ts'
import { runServer, type ServeFlags } from '../host/run-server.ts'
import { addConfigFlags } from '../host/config.ts'

/** Registers the serve command. */
export function addServeCommand(program: CliCommand) {
  addConfigFlags(program.command('serve').description('run the server'))
    .option('--new', 'create a database where files of an earlier one are left; keeps the files')
    .examples(
      'otpd serve',
      'otpd serve --domain otp.example.com',
      'otpd serve --listen 127.0.0.1:0 --data-dir ./data',
      'otpd serve --dev --log-format json',
    )
    .run((context, flags: ServeFlags) => runServer(context, flags))
}
