import { resolve } from 'node:path'
import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import { examples } from '../help.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import type { RunCommand } from '../context.ts'
import { withProgress } from '../terminal/progress.ts'
import { formatFacts, printable, shellWord } from '../terminal/text.ts'

type RestoreFlags = HostFlags & { masterKeyFile?: string; unauthenticated?: boolean }

/** Registers restore. */
export function addRestoreCommand(program: Command, runCommand: RunCommand) {
  addHostFlags(program.command('restore').description('replace the database with a backup'))
    .argument(
      '<file>',
      'file from otpd backup with FILE.hmac next to it, or s3://BUCKET/PREFIX/NAME, or …/latest',
    )
    .option('--master-key-file <file>', 'master key of the day of the backup, if it was replaced since')
    .option('--unauthenticated', 'accept a backup without FILE.hmac (otpd 0.1.0, Litestream)')
    .addHelpText(
      'after',
      examples(
        'OTPD_MASTER_KEY_FILE="$OTPD_DATA_DIR/master.key" otpd restore otpd-monday.db --data-dir restored --yes',
        'otpd restore s3://acme-backups/otpd/latest --yes',
        'otpd restore otpd-last-year.db --master-key-file old-master.key --yes',
      ),
    )
    .action((file: string, options: RestoreFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { io, output } = context
        const backup = await confirm(context, {
          find: async () => file,
          describe: async () => ({
            question:
              'Restore this backup? All changes since then are lost: codes, logs, rotated credentials.',
            name: 'restore',
          }),
        })
        const { masterKeyFile, unauthenticated: allowUnauthenticated } = options
        const keyFile = masterKeyFile === undefined ? undefined : resolve(io.workingDirectory, masterKeyFile)
        const result = await withProgress(context, (onStep) =>
          withDataDir(context, options, (host, needs) =>
            host.restore({ ...needs, onStep }, backup, {
              cwd: io.workingDirectory,
              masterKeyFile: keyFile,
              allowUnauthenticated,
            }),
          ),
        )
        output.printResult(JSON.stringify({ data: result }), () =>
          [
            `${output.paint.green('✓')} Restored ${output.paint.bold(printable(result.file))}`,
            formatFacts(
              [
                ['Old database', result.keptAs && printable(result.keptAs)],
                ['To migrate', result.pendingMigrations.join(', ') || null],
              ],
              output.paint,
            ),
          ]
            .filter(Boolean)
            .join('\n'),
        )
        const { dataDir } = options
        output.suggestNext(
          dataDir === undefined ? 'otpd serve' : `otpd serve --data-dir ${shellWord(dataDir)}`,
        )
      }),
    )
}
