import type { Command } from 'commander'
import { newestMigration } from '../../src/shared/newest-migration.ts'
import { examples } from '../help.ts'
import { withDataDir } from '../host/commands.ts'
import type { RunCommand } from '../context.ts'
import { build, version } from '../version.ts'

/** Registers the version command. */
export function addVersionCommand(program: Command, runCommand: RunCommand) {
  program
    .command('version')
    .description('print the version of this program')
    .option('--data-dir <dir>', 'also compare with the database in this data directory')
    .addHelpText('after', examples('otpd version', 'otpd version --json'))
    .action(({ dataDir }: { dataDir?: string }, command: Command) =>
      runCommand(command, async (context) => {
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
        context.output.printResult(
          JSON.stringify({ data: { ...versionInfo, ...(database && { database }) } }),
          () =>
            [
              `otpd ${version} (${versionInfo.platform}, Bun ${versionInfo.bun})`,
              ...(database
                ? [
                    `Database: ${database.schema ?? 'empty'}, ${database.pending.length} ${database.pending.length === 1 ? 'migration' : 'migrations'} pending`,
                  ]
                : []),
            ].join('\n'),
        )
      }),
    )
}
