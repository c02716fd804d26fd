import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import type { HostFoundBackup } from '../../src/host/host.ts'
import { confirm } from '../terminal/confirm.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import type { Context } from '../context.ts'
import { usageError } from '../terminal/errors.ts'
import { rowsText } from './backup.ts'
import { formatBytes, formatFacts, printable, relativeTime, zonedTime } from '../terminal/text.ts'

type RestoreFlags = HostFlags & { from?: string; masterKeyFile?: string; unauthenticated?: boolean }

/** Registers restore. */
export function addRestoreCommand(program: CliCommand) {
  addHostFlags(program.command('restore').description('replace the database with a backup'))
    .argument(
      '[backup]',
      'name from otpd backup list, or latest; also a path with its FILE.hmac, or s3://BUCKET/PREFIX/NAME',
    )
    .option('--from <place>', 'where it is, if not in backup.to: a folder, or s3://BUCKET/PREFIX')
    .option('--master-key-file <file>', 'master key of the day of the backup, if it was replaced since')
    .option('--unauthenticated', 'accept a backup without FILE.hmac (otpd 0.1.0, Litestream)')
    .examples(
      'OTPD_MASTER_KEY_FILE="$OTPD_DATA_DIR/master.key" otpd restore otpd-monday.db --data-dir restored --yes',
      'otpd restore latest --yes',
      'otpd restore --from s3://acme-backups/otpd --yes',
      'otpd restore otpd-last-year.db --master-key-file old-master.key --yes',
    )
    .run(async (context, name: string | undefined, options: RestoreFlags) => {
      const { io, output } = context
      const { masterKeyFile, unauthenticated: allowUnauthenticated, from } = options
      if (name === undefined && from === undefined)
        throw usageError(
          'Name a backup.',
          'The newest is: otpd restore latest',
          'All are in: otpd backup list',
        )
      const keyFile = masterKeyFile === undefined ? undefined : resolve(io.workingDirectory, masterKeyFile)
      const wanted = { cwd: io.workingDirectory, masterKeyFile: keyFile }
      const found = await withDataDir(context, options, (host, needs) =>
        host.findRestorable(needs, { ...wanted, name: name ?? 'latest', from }),
      )
      output.note(foundText(found, context))
      const backup = await confirm(context, {
        find: async () => found.file,
        describe: async () => ({
          question: 'Restore this backup? All changes since then are lost: codes, logs, rotated credentials.',
          name: 'restore',
        }),
      })
      const result = await withDataDir(context, options, (host, needs) =>
        host.restore(needs, { ...wanted, name: backup }, { allowUnauthenticated }),
      )
      output.printData(result, () =>
        output.details(output.done(`Restored ${output.paint.bold(printable(result.file))}`), [
          ['Old database', result.keptAs && printable(result.keptAs)],
          ['To migrate', result.pendingMigrations.join(', ') || null],
        ]),
      )
      output.suggestNext('otpd serve')
    })
}

const replacedText = (rows: HostFoundBackup['replacedRows']) =>
  rows === null ? 'no database' : rows === 'unreadable' ? 'a database that cannot be read' : rowsText(rows)

/** Says what is restored, how old it is, and what it replaces. */
function foundText(
  { file, at, bytes, rows, replacedRows }: HostFoundBackup,
  { io, output }: Context,
): string {
  return formatFacts(
    [
      ['Backup', printable(file)],
      ['Made', at && `${zonedTime(at)} (${relativeTime(at, io.now())}), ${formatBytes(bytes)}`],
      ['Contains', rows && rowsText(rows)],
      ['Replaces', replacedText(replacedRows)],
    ],
    output.paintError,
  )
}
