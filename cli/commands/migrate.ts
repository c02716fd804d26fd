import type { Command } from 'commander'
import { examples } from '../examples.ts'
import { addHostFlags, withDataDir, type HostFlags } from '../host/commands.ts'
import type { Run } from '../program.ts'
import { printable } from '../terminal/text.ts'

export function addMigrateCommands(program: Command, run: Run) {
  const migrate = program.command('migrate').description("the database's schema, on this machine")

  addHostFlags(migrate.command('status').description('print what is applied and what is pending'))
    .addHelpText('after', examples('otpd migrate status', 'otpd migrate status --json'))
    .action((options: HostFlags, command: Command) =>
      run(command, async (context) => {
        const { output } = context
        const { paint } = output
        const status = await withDataDir(context, options, (host, needs) => host.migrationStatus(needs))
        output.answer(JSON.stringify({ data: status }), () =>
          output.table(
            ['MIGRATION', 'STATUS'],
            [
              ...status.applied.map((name) => [printable(name), paint.green('applied')]),
              ...status.pending.map((name) => [name, paint.yellow('pending')]),
            ],
          ),
        )
        if (status.pending.length > 0) output.next('otpd migrate up')
      }),
    )

  addHostFlags(migrate.command('up').description('apply what is pending, after a backup'))
    .addHelpText('after', examples('otpd migrate up'))
    .action((options: HostFlags, command: Command) =>
      run(command, async (context) => {
        const { output } = context
        const done = await withDataDir(context, options, (host, needs) => host.migrateUp(needs))
        output.answer(JSON.stringify({ data: done }), () => {
          const tick = output.paint.green('✓')
          if (done.migrated.length === 0) return `${tick} The database is up to date`
          return [`${tick} Migrated`, ...done.migrated.map((name) => `  ${name}`)].join('\n')
        })
        if (done.backup !== null) output.note(`Backup from before: ${done.backup}`)
      }),
    )
}
