import { resolve } from 'node:path'
import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import { examples } from '../help.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import type { RunCommand } from '../context.ts'
import { formatBytes } from '../terminal/progress-text.ts'
import { withProgress } from '../terminal/progress.ts'
import { formatFacts, printable, shellWord } from '../terminal/text.ts'

type RestoreFlags = HostFlags & { masterKeyFile?: string; unauthenticated?: boolean }
type RowCounts = { accounts: number; applications: number; otpRequests: number; logEntries: number }

/** Registers backup and restore. */
export function addBackupCommands(program: Command, runCommand: RunCommand) {
  addHostFlags(program.command('backup').description('back up the database, even while the server runs'))
    .argument('[file]', 'new file, never overwritten (default: a new file in backups of the data directory)')
    .addHelpText('after', examples('otpd backup', 'otpd backup otpd-monday.db --data-dir "$OTPD_DATA_DIR"'))
    .action((file: string | undefined, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { io, output } = context
        const path = file === undefined ? undefined : resolve(io.workingDirectory, file)
        const backup = await withProgress(context, (onStep) =>
          withDataDir(context, options, (host, needs) => host.backUp({ ...needs, onStep }, path)),
        )
        output.printResult(JSON.stringify({ data: { ...backup, holdsMasterKey: false } }), () =>
          [
            `${output.paint.green('✓')} Backup ${output.paint.bold(printable(backup.file))}`,
            formatFacts(
              [
                ['Size', formatBytes(backup.bytes)],
                ['SHA-256', backup.sha256],
                ['Contains', rowsText(backup.rows)],
              ],
              output.paint,
            ),
          ].join('\n'),
        )
        output.note(
          `The master key is not in it. Keep a copy of the key elsewhere: without it no backup can be restored.
Keep ${printable(backup.file)}.hmac with the backup: it proves that the backup is unchanged.`,
        )
      }),
    )

  addHostFlags(program.command('restore').description('replace the database with a backup'))
    .argument('<file>', 'file from otpd backup; FILE.hmac next to it proves that it is unchanged')
    .option('--master-key-file <file>', 'master key of the day of the backup, if it was replaced since')
    .option('--unauthenticated', 'accept a backup without FILE.hmac (otpd 0.1.0, Litestream)')
    .addHelpText(
      'after',
      examples(
        'OTPD_MASTER_KEY_FILE="$OTPD_DATA_DIR/master.key" otpd restore otpd-monday.db --data-dir restored --yes',
        'otpd restore otpd-last-year.db --master-key-file old-master.key --yes',
      ),
    )
    .action((file: string, options: RestoreFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { io, output } = context
        const path = await confirm(context, {
          find: async () => resolve(io.workingDirectory, file),
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
            host.restore({ ...needs, onStep }, path, { masterKeyFile: keyFile, allowUnauthenticated }),
          ),
        )
        output.printResult(JSON.stringify({ data: { file: path, ...result } }), () =>
          [
            `${output.paint.green('✓')} Restored ${output.paint.bold(printable(path))}`,
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

const rowsText = ({ accounts, applications, otpRequests, logEntries }: RowCounts) =>
  `accounts (${accounts}), applications (${applications}), OTP requests (${otpRequests}), log entries (${logEntries})`
