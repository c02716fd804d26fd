import { Argument } from 'commander'
import type { CliCommand } from './command.ts'
import { connectAsApplication, type EnvFileOption } from '../client/credentials.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import { channelName } from '../client/log-lines.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'
import { addFieldOptions, readFields, type FieldOptions } from './field-options.ts'
import { envFileFlag, envFileOption, otpOptions, phoneHelp } from './otp-options.ts'

type DeliverOptions = EnvFileOption & IdempotencyOption

type DeliverFields = Omit<Route<'POST', '/v1/otp/deliver'>['body'], 'phone' | 'code'>

const { country, channel, locale, clientIp } = otpOptions
const fields: FieldOptions<DeliverFields> = { country, channel, locale, clientIp }

const outcomes = ['verified', 'failed'] as const

/** Registers `otpd otp deliver` and `otpd otp outcome`. */
export function addOtpDeliverCommands(otp: CliCommand) {
  addFieldOptions(otp.command('deliver'), fields)
    .argument('<phone>', phoneHelp)
    .argument('<code>', 'made and checked by you: 4 to 10 digits and letters')
    .description('deliver a code of your own to a phone; otpd does not keep or check it')
    .addOption(idempotencyKeyOption())
    .addOption(envFileOption())
    .examples('otpd otp deliver +14155550100 907155 --env-file .env.otpd')
    .run(async (context, phone: string, code: string, options: DeliverOptions) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const body = { phone, code, ...readFields(options, fields) }
      const call = { body, headers: idempotencyHeaders(options) }
      const response = await api.asApplication('POST', '/v1/otp/deliver', credentials, call)
      const { data } = response
      const outcome = data.status === 'sent' ? 'was sent' : 'may have been sent'
      output.printResult(
        response.body,
        () =>
          output.details(
            output.done(
              `The code ${outcome} to ${output.paint.bold(printable(data.phone))} by ${channelName(data.channel)}`,
            ),
            [['Message', data.id]],
          ),
        [data.id],
      )
      output.suggestNext(`otpd otp outcome ${data.id} verified${envFileFlag(options)}`)
    })

  otp
    .command('outcome')
    .argument('<message-id>', 'from otp deliver')
    .addArgument(
      new Argument('<outcome>', 'verified or failed: whether your user entered the code').choices(outcomes),
    )
    .description('report whether a code of your own was entered, as evidence for the guard')
    .addOption(envFileOption())
    .examples('otpd otp outcome "$MESSAGE_ID" verified --env-file .env.otpd')
    .run(async (context, id: string, outcome: (typeof outcomes)[number], options: EnvFileOption) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const call = { params: { id }, body: { outcome } }
      const response = await api.asApplication('POST', '/v1/otp/deliver/:id/outcome', credentials, call)
      const phone = output.paint.bold(printable(response.data.phone))
      const result = outcome === 'verified' ? 'was verified' : 'was not verified'
      output.printResult(response.body, () => output.done(`Reported that ${phone} ${result}`))
    })
}
