import type { CliCommand } from './command.ts'
import type { Host } from '../../src/host/host.ts'
import { confirm } from '../terminal/confirm.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import type { Context } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { printable, shortPath } from '../terminal/text.ts'
import { countryFlags, countryHelp, type CountryOption } from './country-option.ts'
import { erasureText, unlockText } from './user.ts'

type Options = HostFlags & CountryOption

/** Registers the commands for one phone number: unlock its limits, erase it everywhere. */
export function addAdminPhoneCommands(admin: CliCommand) {
  addHostFlags(
    admin
      .command('unlock')
      .description('reset the limits of a phone, so that codes can be sent and verified again'),
  )
    .argument('<phone|app>', 'number like +14155550100, or the id of an application to unlock all its phones')
    .option(countryFlags, countryHelp)
    .examples('otpd admin unlock +14155550100')
    .run(async (context, target: string, options: Options) => {
      const { output } = context
      const { result, place } = await withHost(context, options, 'write', async (host) => ({
        result: await host.unlock(target, options.country),
        place: describePlace(host, context),
      }))
      output.printData(result, () => unlockText(target, result, output, place))
    })

  addHostFlags(admin.command('erase').description('erase a phone number from all records of all accounts'))
    .argument('<phone>', 'number like +14155550100')
    .option(countryFlags, countryHelp)
    .examples('otpd admin erase +14155550100 --yes')
    .run(async (context, phone: string, options: Options) => {
      const { output } = context
      await confirm(context, {
        find: async () => phone,
        describe: async () => ({
          question:
            'Erase this phone number? Its codes are canceled and its users deleted, in every account.',
          name: phone,
        }),
      })
      const { erasure, place } = await withHost(context, options, 'write', async (host) => ({
        erasure: await host.erase(phone, options.country),
        place: describePlace(host, context),
      }))
      const { otpRequests, logEntries, users } = erasure
      const isFound = otpRequests + logEntries + users > 0
      output.printData(erasure, () =>
        isFound
          ? erasureText(phone, erasure, output)
          : `${output.paint.yellow('▲')} Nothing found for ${output.paint.bold(printable(phone))} in ${place}`,
      )
      if (!isFound) return exitCodes.negative
      output.note('Backups made earlier still contain it: delete them, or let them expire.')
      return exitCodes.done
    })
}

const describePlace = ({ dataDir }: Host, { io }: Context) =>
  dataDir === null ? 'the database' : printable(shortPath(dataDir, io.homeDirectory))
