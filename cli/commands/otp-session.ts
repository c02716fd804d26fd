import type { CliCommand } from './command.ts'
import { connectAsApplication, type EnvFileOption } from '../client/credentials.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'
import { addFieldOptions, readFields, textOption, type FieldOptions } from './field-options.ts'
import { envFileFlag, envFileOption, otpOptions, templateOptions } from './otp-options.ts'

type SessionFields = Omit<Route<'POST', '/v1/otp/sessions'>['body'], 'returnUrl'>

const createOptions: FieldOptions<SessionFields> = {
  phone: textOption('--phone <phone>', 'the only phone that the user can verify'),
  country: otpOptions.country,
  locale: textOption('--locale <tag>', 'language of the page and its messages, like en or pt-BR'),
  state: textOption('--state <text>', 'text of yours that the browser brings back'),
  ...templateOptions,
}

/** Registers `otpd otp session`. */
export function addOtpSessionCommands(otp: CliCommand) {
  const session = otp.command('session').description('links to the ready page, each for one user')

  addFieldOptions(session.command('create'), createOptions)
    .alias('new')
    .description('create a link to the page, and show it as a QR code too')
    .requiredOption('--return-url <url>', 'where the browser returns to; its origin must be allowed')
    .addOption(envFileOption())
    .examples(
      'otpd otp session create --return-url https://shop.example/back --env-file .env.otpd',
      'otpd otp session create --return-url https://shop.example/back --phone +14155550100 --env-file .env.otpd',
      "otpd otp session create --return-url https://shop.example/back --template payment --variable amount='9.99 EUR' --variable payee='Ada Books' --env-file .env.otpd",
    )
    .run(async (context, options: EnvFileOption & { returnUrl: string }) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const body = { returnUrl: options.returnUrl, ...readFields(options, createOptions) }
      const response = await api.asApplication('POST', '/v1/otp/sessions', credentials, { body })
      const { id, url, expiresAt } = response.data
      if (output.isForPeople) {
        const { renderUnicodeCompact } = await import('uqr')
        // Drawn for a dark terminal; cameras read it inverted too.
        output.note(renderUnicodeCompact(url, { border: 2 }))
      }
      const facts = output.formatFacts([
        ['Session', id],
        ['Link', url],
        ['Expires', output.formatTime(expiresAt)],
      ])
      output.printResult(response.body, () => facts, [id])
      output.suggestNext(`otpd otp session get ${id}${envFileFlag(options)}`)
    })

  session
    .command('get')
    .alias('show')
    .argument('<session-id>', 'from otp session create')
    .description('show the status of a session, and the phone once it is verified')
    .addOption(envFileOption())
    .examples('otpd otp session get "$SESSION_ID" --env-file .env.otpd')
    .run(async (context, id: string, options: EnvFileOption) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const call = { params: { id } }
      const response = await api.asApplication('GET', '/v1/otp/sessions/:id', credentials, call)
      const { data } = response
      const status = data.status === 'verified' ? output.paint.green('✓ verified') : data.status
      const facts = output.formatFacts([
        ['Session', data.id],
        ['Status', status],
        ['Phone', data.phone === null ? null : printable(data.phone)],
        ['Request', data.requestId],
        ['State', data.state === null ? null : printable(data.state)],
        ['Template', data.template],
        ['Amount', data.variables && printable(data.variables.amount)],
        ['Payee', data.variables && printable(data.variables.payee)],
        ['Created', output.formatTime(data.createdAt)],
        ['Expires', output.formatTime(data.expiresAt)],
        ['Verified', data.verifiedAt === null ? null : output.formatTime(data.verifiedAt)],
      ])
      output.printResult(response.body, () => facts, [data.id])
    })
}
