import { resolve } from 'node:path'
import type { CliCommand } from './command.ts'
import type { HostBackupList } from '../../src/host/host.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import { usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional } from '../terminal/table.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { formatBytes, printable } from '../terminal/text.ts'

type RowCounts = { accounts: number; applications: number; otpRequests: number; logEntries: number }

/** Registers backup and its subcommands. */
export function addBackupCommands(program: CliCommand) {
  const backup = program.command('backup')
  addHostFlags(backup.description('back up the database, even while the server runs'))
    .argument(
      '[file]',
      'new file, never overwritten, or a folder for one (default: backup.to, see otpd config show)',
    )
    .option('--prune', 'then delete all but the newest backups that verified (backup.keep)')
    .examples(
      'otpd backup',
      'otpd backup otpd-monday.db --data-dir "$OTPD_DATA_DIR"',
      'OTPD_BACKUP_TO=s3://acme-backups/otpd otpd backup --prune',
    )
    .run(async (context, file: string | undefined, options: HostFlags & { prune?: true }) => {
      const { io, output } = context
      const path = checkFile(file, options, io.workingDirectory)
      const { prune = false } = options
      const result = await withDataDir(context, options, (host, needs) =>
        host.backUp(needs, { file: path, prune }),
      )
      const { file: made, bytes, sha256, rows, pruned } = result
      const isRemote = made.startsWith('s3://')
      output.printData({ ...result, holdsMasterKey: false }, () =>
        output.details(output.done(`Backup ${output.paint.bold(printable(made))}`), [
          ['Size', isRemote ? `${formatBytes(bytes)}, encrypted` : formatBytes(bytes)],
          [isRemote ? 'SHA-256 of the database' : 'SHA-256', sha256],
          ['Contains', rowsText(rows)],
          ['Deleted', pruned.length === 0 ? null : pruned.map(printable).join(', ')],
        ]),
      )
      output.note(
        `The master key is not in it. Keep a copy of the key elsewhere: without it no backup can be restored.
${isRemote ? 'Do not keep it in the same bucket: both together are your data in plain text. otpd doctor says where it comes from.' : `Keep ${printable(made)}.hmac with the backup: it proves that the backup is unchanged.`}`,
      )
    })

  addHostFlags(
    backup
      .command('list')
      .description('list the backups in backup.to, and the copies of upgrades and restores, newest first'),
  )
    .allowExcessArguments()
    .option('--from <place>', 'another place: a folder, or s3://BUCKET/PREFIX')
    .examples('otpd backup list', 'otpd backup list --from s3://acme-backups/otpd')
    .run(async (context, _: HostFlags, command: CliCommand) => {
      const { io, output } = context
      const options = hostFlagsOf<{ from?: string }>(command)
      const { from } = options
      const [place] = command.args
      if (place !== undefined)
        throw usageError(
          'backup list takes no name: it lists backup.to.',
          `For another place, use: otpd backup list --from ${shellWord(place)}`,
          `To look at one backup, use: otpd backup verify ${shellWord(place)}`,
        )
      const list = await withDataDir(context, options, (host, needs) =>
        host.listBackups(needs, { from, cwd: io.workingDirectory }),
      )
      output.printData(
        list.backups,
        () => listText(list, output),
        list.backups.map(({ name }) => name),
      )
    })

  addHostFlags(
    backup
      .command('verify')
      .description('read a backup to its end, check it as a restore does, and count it'),
  )
    .argument('<backup>', 'name from otpd backup list, or latest; also a path, or s3://BUCKET/PREFIX/NAME')
    .examples('otpd backup verify latest', 'otpd backup verify ./otpd-monday.db')
    .run(async (context, name: string, _: HostFlags, command: CliCommand) => {
      const { io, output } = context
      const options = hostFlagsOf(command)
      const result = await withDataDir(context, options, (host, needs) =>
        host.verifyBackup(needs, name, { cwd: io.workingDirectory }),
      )
      output.printData(result, () =>
        output.details(output.done(`${output.paint.bold(printable(result.file))} is whole and unchanged`), [
          ['Size', formatBytes(result.bytes)],
          ['Contains', rowsText(result.rows)],
        ]),
      )
    })
}

/** Reads the flags of a subcommand: `backup` has the same ones, and commander gives them to it wherever they stand. */
const hostFlagsOf = <T = unknown>(command: CliCommand) => command.optsWithGlobals<HostFlags & T>()

/** Returns the path of a file that was named. @throws usage error for a bucket, or with --prune */
function checkFile(file: string | undefined, { prune }: { prune?: true }, cwd: string): string | undefined {
  if (file === undefined) return undefined
  if (/^s3:/i.test(file))
    throw usageError('FILE cannot be a bucket.', `Set it in backup.to: OTPD_BACKUP_TO=${file} otpd backup`)
  if (prune)
    throw usageError('--prune works on backup.to, not on a file that you name.', 'Leave one of them out.')
  return resolve(cwd, file)
}

const stateText = {
  verified: 'verified',
  unverified: 'not verified',
  'another key': 'of another master key',
} as const

function listText(
  { place, backups }: HostBackupList,
  { formatTable, clockHeading, clockTime }: Output,
): string {
  if (backups.length === 0) return `No backups in ${printable(place)}.`
  return formatTable(
    [clockHeading('WHEN'), 'SIZE', optional('STATE'), kept('NAME')],
    backups.map(({ at, bytes, state, name }) => [clockTime(at), formatBytes(bytes), stateText[state], name]),
  )
}

/** Lists the counts of rows of a backup. */
export const rowsText = ({ accounts, applications, otpRequests, logEntries }: RowCounts) =>
  `accounts (${accounts}), applications (${applications}), OTP requests (${otpRequests}), log entries (${logEntries})`
