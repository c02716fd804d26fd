import type { CliCommand } from './command.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import { addMoveCommand } from './migrate-to-postgres.ts'
import { kept } from '../terminal/table.ts'
import { printable } from '../terminal/text.ts'

/** Registers the migrate commands. */
export function addMigrateCommands(program: CliCommand) {
  const migrate = program.command('migrate').description('migrations of the database')

  addHostFlags(migrate.command('status').description('show applied and pending migrations'))
    .examples('otpd migrate status', 'otpd migrate status --json')
    .run(async (context, options: HostFlags) => {
      const { output } = context
      const { paint } = output
      const status = await withDataDir(context, options, (host, needs) => host.migrationStatus(needs))
      output.printData(status, () =>
        output.formatTable(
          ['MIGRATION', kept('STATUS')],
          [
            ...status.applied.map((name) => [printable(name), paint.green('applied')]),
            ...status.pending.map((name) => [name, paint.yellow('pending')]),
          ],
        ),
      )
      if (status.pending.length > 0) output.suggestNext('otpd migrate up')
    })

  addMoveCommand(migrate)
  addHostFlags(migrate.command('up').description('apply pending migrations; SQLite is backed up first'))
    .examples('otpd migrate up')
    .run(async (context, options: HostFlags) => {
      const { output } = context
      const noteDrain = (name: string) =>
        output.note(`${name} waits 25 s, so that nodes of older versions drain before it is applied.`)
      const result = await withDataDir(context, options, (host, needs) => host.migrateUp(needs, noteDrain))
      output.printData(result, () =>
        result.migrated.length === 0
          ? output.done('The database is up to date')
          : [output.done('Migrated'), ...result.migrated.map((name) => `  ${name}`)].join('\n'),
      )
      if (result.backup !== null) output.note(`Backup made before the migration: ${result.backup}`)
    })
}
