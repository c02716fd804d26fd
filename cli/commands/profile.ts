import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { findFieldFault, usageError } from '../terminal/errors.ts'
import type { Output } from '../terminal/output.ts'
import { ask, askNewPassword, askUntilAccepted, readSecret } from '../terminal/prompt.ts'
import type { DeveloperProfile } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import {
  addFieldOptions,
  nullableOption,
  nameOption,
  readChanges,
  type FieldOptions,
  type OptionValues,
} from './field-options.ts'
import { printable } from '../terminal/text.ts'
import { addTotpCommands } from './profile-totp.ts'

const changeOptions: FieldOptions<Route<'PATCH', '/v1/developer/me'>['body']> = {
  name: nameOption,
  company: nullableOption('--company <name>', 'new company, up to 120 characters'),
}

/** Registers the commands for the developer's own account. */
export function addProfileCommands(program: CliCommand) {
  const profile = program
    .command('profile')
    .description('your account: name, company, plan, password and TOTP')

  profile
    .command('get')
    .alias('show')
    .description('show your account and the limits of its plan')
    .examples('otpd profile get', 'otpd profile get --json')
    .run(async ({ api, output }) => {
      const response = await api.asDeveloper('GET', '/v1/developer/me')
      output.printResult(response.body, () => profileText(response.data, output), [response.data.id])
    })

  addFieldOptions(profile.command('update'), changeOptions)
    .description('change your name or company')
    .examples("otpd profile update --name Ada --company 'Analytical Engines'")
    .run(async ({ connect, output }, options: OptionValues) => {
      const body = readChanges(options, changeOptions)
      const response = await connect().api.asDeveloper('PATCH', '/v1/developer/me', { body })
      output.printResult(response.body, () =>
        [output.done('Profile updated'), profileText(response.data, output)].join('\n'),
      )
    })

  profile
    .command('password')
    .description('change your password; ends every session, including this one')
    .option('--password-stdin', 'read the current and the new password from standard input, one per line')
    .examples('otpd profile password --password-stdin < passwords')
    .run(async (context, options: { passwordStdin?: boolean }) => {
      const { connect, output } = context
      const { api, server } = connect()
      const change = (body: Passwords) => api.asDeveloper('POST', '/v1/auth/password', { body })
      const isFromInput = options.passwordStdin === true && !context.io.stdinIsTerminal
      const response = isFromInput
        ? await change(await readPasswords(context))
        : await askPasswords(context, change)
      output.printResult(response.body, () => output.done('Password changed; every session has ended'))
      output.suggestNext(`otpd login --server ${server.url}`)
    })

  addTotpCommands(profile)
}

type Passwords = Route<'POST', '/v1/auth/password'>['body']

/** Reads both passwords from two lines of standard input. */
async function readPasswords({ io }: Context): Promise<Passwords> {
  const lines = (await readSecret(io, 'password')).split(/\r?\n/)
  const [currentPassword, newPassword] = lines
  if (lines.length !== 2 || !currentPassword || !newPassword)
    throw usageError(
      'Standard input must have the current password on the first line and the new one on the second.',
    )
  return { currentPassword, newPassword }
}

/** Prompts for both passwords without echo, and for the new one, twice, until it is accepted. */
async function askPasswords<T>(context: Context, change: (passwords: Passwords) => Promise<T>): Promise<T> {
  const flag = '--password-stdin, with the current and the new password on standard input, one per line'
  const currentPassword = await ask(context, { label: 'Current password', flag, secret: true })
  return await askUntilAccepted(
    context,
    () => askNewPassword(context, { label: 'New password', flag }),
    (newPassword) => change({ currentPassword, newPassword }),
    (error) => findFieldFault(error, 'newPassword'),
  )
}

function profileText(developer: DeveloperProfile, { details, paint, formatTime }: Output) {
  const { projects, applications, sendPerMinute, verifyPerMinute, consolePerMinute, lookupsPerMinute } =
    developer.limits
  const rateText = (perMinute: number, subject = ' and application') =>
    perMinute === 0 ? 'unlimited' : `${perMinute} per minute${subject}`
  return details(paint.bold(printable(developer.email ?? developer.id)), [
    ['Name', developer.name && printable(developer.name)],
    ['Company', developer.company && printable(developer.company)],
    ['Id', developer.id],
    ['Virtual phone', developer.virtualPhoneNumber],
    ['Plan', printable(developer.plan)],
    ['Limits', `${projects} projects, ${applications} applications`],
    ['Sends', rateText(sendPerMinute)],
    ['Verifications', rateText(verifyPerMinute)],
    ['Look-ups', rateText(lookupsPerMinute, ' and API key')],
    ['Console calls', rateText(consolePerMinute, '')],
    ['Created', formatTime(developer.createdAt)],
  ])
}
