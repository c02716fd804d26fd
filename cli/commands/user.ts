import type { CliCommand } from './command.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { User } from '../client/resources.ts'
import { findPhone, readApplicationNames, type Names } from '../client/find.ts'
import { lastDigitsNote } from '../client/last-digits.ts'
import { confirm } from '../terminal/confirm.ts'
import { kept, optional } from '../terminal/table.ts'
import { countryFlags, countryHelp, type CountryOption } from './country-option.ts'
import { environmentOption } from './environment-option.ts'
import { namedId, printable } from '../terminal/text.ts'
import type { Environment } from '../../src/shared/otp-values.ts'

type Options = ListOptions & CountryOption & { env?: Environment; phone?: string }

/** Registers the commands for verified phones. */
export function addUserCommands(program: CliCommand) {
  const user = program.command('user').alias('users').description('verified phones')

  addListOptions(user.command('list').alias('ls').description('list verified phones, newest first'))
    .option('--phone <number>', 'only this number, or those that end with these digits')
    .option(countryFlags, countryHelp)
    .addOption(environmentOption('only phones that were verified by'))
    .examples('otpd user list', 'otpd user list --phone 0100', 'otpd user list --env live --limit 10 --json')
    .run(async ({ api, output }, options: Options) => {
      const { env: environment, phone, country } = options
      const page = await readList(options, (paging) =>
        api.asDeveloper('GET', '/v1/users', { query: { ...paging, environment, phone, country } }),
      )
      const text = (users: User[]) =>
        users.length === 0 && phone !== undefined ? noMatch : listText(users, output)
      printList(output, page, text, lastDigitsNote(options, 'newest 1,000 users'))
    })

  user
    .command('get')
    .alias('show')
    .argument('<phone>', phoneHelp)
    .option(countryFlags, countryHelp)
    .description('show when, how often and through which applications a phone was verified')
    .examples('otpd user get +14155550100')
    .addOption(environmentOption('as'))
    .run(async ({ api, output }, phone: string, options: Options) => {
      const call = {
        params: { phoneNumber: await findPhone(api, phone, options.country) },
        query: { environment: options.env, country: options.country },
      }
      const response = await api.asDeveloper('GET', '/v1/users/:phoneNumber', call)
      const names = output.isForPeople ? await readApplicationNames(api) : new Map<string, string>()
      output.printResult(response.body, () => userText(response.data, names, output), [response.data.id])
    })

  addPhoneActions(user)
}

/** Registers the commands that change what is kept about a phone: see `otpd admin` for those of the operator. */
function addPhoneActions(user: CliCommand) {
  user
    .command('unlock')
    .argument('<phone>', phoneHelp)
    .option(countryFlags, countryHelp)
    .description('reset the limits of a phone, so that codes can be sent and verified again')
    .examples('otpd user unlock +14155550100')
    .run(async ({ api, output }, phone: string, { country }: CountryOption) => {
      const params = { phoneNumber: await findPhone(api, phone, country) }
      const call = { params, query: { country } }
      const response = await api.asDeveloper('POST', '/v1/users/:phoneNumber/unlock', call)
      output.printResult(response.body, () => unlockText(params.phoneNumber, response.data, output))
    })

  user
    .command('erase')
    .argument('<phone>', phoneHelp)
    .option(countryFlags, countryHelp)
    .description('erase a phone number from all records of your account')
    .examples('otpd user erase +14155550100 --yes')
    .run(async (context, phone: string, { country }: CountryOption) => {
      const { api, output } = context
      const phoneNumber = await confirm(context, {
        find: () => findPhone(api, phone, country),
        describe: async (name) => ({
          question: 'Erase this phone number? Its codes are canceled and its users deleted.',
          name,
        }),
      })
      const call = { params: { phoneNumber }, query: { erase: 'true' as const, country } }
      const response = await api.asDeveloper('DELETE', '/v1/users/:phoneNumber', call)
      output.printResult(response.body, () => erasureText(phoneNumber, response.data, output))
      output.note('Backups made earlier still contain it. They belong to the operator of the server.')
    })
}

const noMatch = 'No phone that was verified matches.'

const phoneHelp = 'number like +14155550100, the last digits or the id of a user'

/** Says what was unlocked. @param place where nothing was counted, if that may be another place than expected */
export function unlockText(
  phone: string,
  { checkBudgets, admissions }: { checkBudgets: number; admissions: number },
  { done, paint }: Output,
  place?: string,
) {
  const name = paint.bold(printable(phone))
  return checkBudgets + admissions > 0
    ? done(`Unlocked ${name}`)
    : `${name} was not locked: no attempts were counted${place === undefined ? '' : ` in ${place}`}.`
}

/** Says from how many records a phone was erased. */
export const erasureText = (
  phone: string,
  { otpRequests, logEntries, users }: { otpRequests: number; logEntries: number; users: number },
  { done, paint }: Output,
) =>
  done(
    `Erased ${paint.bold(printable(phone))} from OTP requests (${otpRequests}), log entries (${logEntries}) and users (${users})`,
  )

function listText(users: User[], { formatTable, columnTime, timeHeading }: Output) {
  if (users.length === 0)
    return 'No phones verified yet. Send a code and verify it:\n  otpd otp send PHONE --env-file FILE'
  const rows = users.map((user) => [
    printable(user.phone),
    user.country ?? '',
    String(user.verificationCount),
    columnTime(user.lastVerifiedAt),
    user.environment,
    String(user.applications.length),
    user.id,
  ])
  return formatTable(
    [
      kept('PHONE'),
      optional('COUNTRY'),
      kept('COUNT'),
      kept(timeHeading('LAST')),
      optional('ENV'),
      optional('APPS'),
      'ID',
    ],
    rows,
  )
}

function userText(user: User, names: Names, { details, paint, formatTime }: Output) {
  return details(paint.bold(printable(user.phone)), [
    ['Id', user.id],
    ['Environment', user.environment],
    ['Country', user.country],
    ['Verifications', String(user.verificationCount)],
    ['First', formatTime(user.firstVerifiedAt)],
    ['Last', formatTime(user.lastVerifiedAt)],
    ['Applications', user.applications.map((id) => namedId(id, names.get(id))).join(', ')],
  ])
}
