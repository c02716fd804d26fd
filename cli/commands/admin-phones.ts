import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import { examples } from '../help.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import type { RunCommand } from '../context.ts'
import { printable } from '../terminal/text.ts'

/** Registers the commands for one phone number: unlock its limits, erase it everywhere. */
export function addAdminPhoneCommands(admin: Command, runCommand: RunCommand) {
  addHostFlags(
    admin
      .command('unlock')
      .description('reset the limits of a phone, so that codes can be sent and verified again'),
  )
    .argument('<phone|app>', 'number like +14155550100, or the id of an application to unlock all its phones')
    .addHelpText('after', examples('otpd admin unlock +14155550100'))
    .action((target: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const result = await withHost(context, options, 'write', (host) => host.unlock(target))
        output.printResult(JSON.stringify({ data: result }), () => {
          const displayTarget = output.paint.bold(printable(target))
          const hadCounts = result.checkBudgets + result.admissions > 0
          return hadCounts
            ? `${output.paint.green('✓')} Unlocked ${displayTarget}`
            : `${displayTarget} was not locked: no attempts were counted.`
        })
      }),
    )

  addHostFlags(admin.command('erase').description('erase a phone number from all records of all accounts'))
    .argument('<phone>', 'with country code, like +14155550100')
    .addHelpText('after', examples('otpd admin erase +14155550100 --yes'))
    .action((phone: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        await confirm(context, {
          find: async () => phone,
          describe: async () => ({
            question:
              'Erase this phone number? Its codes are canceled and its users deleted, in every account.',
            name: phone,
          }),
        })
        const erasure = await withHost(context, options, 'write', (host) => host.erase(phone))
        output.printResult(
          JSON.stringify({ data: erasure }),
          () =>
            `${output.paint.green('✓')} Erased ${output.paint.bold(printable(phone))} from OTP requests (${erasure.otpRequests}), log entries (${erasure.logEntries}) and users (${erasure.users})`,
        )
        output.note('Backups made earlier still contain it: delete them, or let them expire.')
      }),
    )
}
