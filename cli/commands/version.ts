import type { CliCommand } from './command.ts'
import { newestMigration } from '../../src/shared/newest-migration.ts'
import { withDataDir } from '../host/commands.ts'
import { build, version } from '../version.ts'

/** Registers the version command. */
export function addVersionCommand(program: CliCommand) {
  program
    .command('version')
    .description('print the version of this program')
    .option('--data-dir <dir>', 'also compare with the database in this data directory')
    .examples('otpd version', 'otpd version --json')
    .run(async (context, { dataDir }: { dataDir?: string }) => {
      const versionInfo = {
        version,
        commit: build.commit,
        target: build.target,
        schema: newestMigration,
        bun: Bun.version,
        platform: `${process.platform}-${process.arch}`,
        api: 'v1',
      }
      const status =
        dataDir === undefined
          ? undefined
          : await withDataDir(context, { dataDir }, (host, needs) => host.migrationStatus(needs))
      const database = status && { schema: status.applied.at(-1) ?? null, pending: status.pending }
      context.output.printData({ ...versionInfo, ...(database && { database }) }, () =>
        [
          `otpd ${version} (${versionInfo.platform}, Bun ${versionInfo.bun})`,
          ...(database
            ? [
                `Database: ${database.schema ?? 'empty'}, ${database.pending.length} ${database.pending.length === 1 ? 'migration' : 'migrations'} pending`,
              ]
            : []),
        ].join('\n'),
      )
    })
}
