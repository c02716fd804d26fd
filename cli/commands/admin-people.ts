import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import { examples } from '../examples.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import type { RunCommand } from '../program.ts'
import { printable } from '../terminal/text.ts'
import { auditText } from './audit.ts'
import { usageError } from '../terminal/errors.ts'

type AuditOptions = HostFlags & { limit?: string }

/** What an operator does for the people behind phone numbers, and the trail of what operators and developers did. */
export function addAdminPeopleCommands(admin: Command, runCommand: RunCommand) {
  addHostFlags(admin.command('unlock').description('let the codes of a phone be checked and sent again'))
    .argument('<phone|app>', 'a number like +14155550100, or the id of an application: every phone with it')
    .addHelpText('after', examples('otpd admin unlock +14155550100'))
    .action((target: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const result = await withHost(context, options, (host) => host.unlock(target))
        output.printResult(JSON.stringify({ data: result }), () => {
          const displayTarget = output.paint.bold(printable(target))
          const hadCounts = result.checkBudgets + result.admissions > 0
          return hadCounts
            ? `${output.paint.green('✓')} Unlocked ${displayTarget}`
            : `Nothing was counted against ${displayTarget}.`
        })
      }),
    )

  addHostFlags(admin.command('erase').description('forget a phone number everywhere, in every account'))
    .argument('<phone>', 'with country code, like +14155550100')
    .addHelpText('after', examples('otpd admin erase +14155550100 --yes'))
    .action((phone: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        await confirm(context, {
          find: async () => phone,
          describe: async () => ({
            question:
              'Forget this phone number? Its codes are canceled and its users are gone, in every account.',
            name: phone,
          }),
        })
        const erasure = await withHost(context, options, (host) => host.erase(phone))
        output.printResult(
          JSON.stringify({ data: erasure }),
          () =>
            `${output.paint.green('✓')} Erased ${output.paint.bold(printable(phone))} from OTP requests (${erasure.otpRequests}), log entries (${erasure.logEntries}) and users (${erasure.users})`,
        )
        output.note('Backups that were made before still hold it: remove them, or let them run out.')
      }),
    )

  addHostFlags(admin.command('audit').description('the audit trail of every account and of the installation'))
    .option('--limit <number>', 'how many of the newest, 1 to 10000 (50)')
    .addHelpText('after', examples('otpd admin audit', 'otpd admin audit --limit 1000 --json'))
    .action((options: AuditOptions, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const limit = Number(options.limit ?? 50)
        if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
          throw usageError('--limit is a number from 1 to 10000.')
        const entries = await withHost(context, options, (host) => host.listAudit({ limit }))
        output.printResult(JSON.stringify({ data: entries }), () => auditText(entries, output))
      }),
    )
}
