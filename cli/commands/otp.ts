import type { Command } from 'commander'
import { findAppCredentials, readEnvFile } from '../app-credentials.ts'
import type { Context } from '../context.ts'
import { examples } from '../examples.ts'
import type { Run } from '../program.ts'
import { facts, localTime, printable, remaining, shellWord } from '../text.ts'

type Options = { envFile?: string }

const envFileHelp = "the application's credentials (else OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY)"

export function addOtpCommands(program: Command, run: Run) {
  const otp = program.command('otp').description('send a code to a phone and verify it, as an application')

  otp
    .command('send')
    .argument('<phone>', 'with country code, like +14155550100')
    .description('send a code')
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp send +14155550100 --env-file .env.otpd'))
    .action((phone: string, options: Options, command: Command) =>
      run(command, async (context) => {
        const { output, io } = context
        const { api, credentials } = asApplication(context, options)
        const sent = await api.asApplication('POST', '/v1/otp/send', credentials, {
          body: { phone },
        })
        const { data } = sent
        output.answer(sent.body, () =>
          [
            `${output.paint.green('✓')} Code sent to ${output.paint.bold(printable(data.phone))}`,
            facts(
              [
                ['Request', data.requestId],
                ['Code', data.code],
                [
                  'Expires',
                  `${localTime(data.expiresAt)} (in ${remaining(Date.parse(data.expiresAt) - io.now())})`,
                ],
              ],
              output.paint,
            ),
          ].join('\n'),
        )
        const file = options.envFile === undefined ? '' : ` --env-file ${shellWord(options.envFile)}`
        const verify = `otpd otp verify ${data.requestId} ${data.code ?? 'CODE'}${file}`
        output.next(...(data.code === undefined ? ['otpd inbox', verify] : [verify]))
      }),
    )

  otp
    .command('verify')
    .argument('<request-id>', 'what sending gave, otp_…')
    .argument('<code>', 'the six digits')
    .description('check a code')
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp verify "$REQUEST_ID" 424242 --env-file .env.otpd'))
    .action((requestId: string, code: string, options: Options, command: Command) =>
      run(command, async (context) => {
        const { output } = context
        const { api, credentials } = asApplication(context, options)
        const body = { requestId, code }
        const verified = await api.asApplication('POST', '/v1/otp/verify', credentials, { body })
        const { data } = verified
        output.answer(
          verified.body,
          () =>
            `${output.paint.green('✓')} ${output.paint.bold(printable(data.phone))} is verified (${localTime(data.verifiedAt)})`,
        )
      }),
    )
}

function asApplication(context: Context, { envFile }: Options) {
  const file = envFile === undefined ? null : readEnvFile(context.io, envFile)
  const { api } = context.connect(file?.values.OTPD_SERVER)
  return { api, credentials: findAppCredentials(context.io, file) }
}
