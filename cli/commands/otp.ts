import { Option, type Command } from 'commander'
import { connectAsApplication } from '../client/credentials.ts'
import type { ApiResponse } from '../client/api.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import type { SentOtp } from '../client/resources.ts'
import { formatFacts, printable, shellWord } from '../terminal/text.ts'
import { addOtpRequestCommands } from './otp-requests.ts'

type EnvFileOption = { envFile?: string }

type SendOptions = EnvFileOption & { clientIp?: string; deviceId?: string }

type ResendOptions = EnvFileOption & { channel?: (typeof channels)[number] }

const channels = ['sms', 'whatsapp', 'telegram', 'voice'] as const

const envFileHelp =
  "file with the application's credentials (default: OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY)"

const targetHelp = 'request id from otp send, or the phone'

/** Registers the otp commands. */
export function addOtpCommands(program: Command, runCommand: RunCommand) {
  const otp = program.command('otp').description('send and verify codes, as an application')

  otp
    .command('send')
    .argument('<phone>', 'with country code, like +14155550100')
    .description('send a code to a phone')
    .option('--client-ip <address>', "end user's IP address; known networks have limits of their own")
    .option('--device-id <id>', "name of the end user's device; known devices have limits of their own")
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp send +14155550100 --env-file .env.otpd'))
    .action((phone: string, options: SendOptions, command: Command) =>
      runCommand(command, async (context) => {
        const { api, credentials } = connectAsApplication(context, options)
        const { clientIp, deviceId } = options
        const response = await api.asApplication('POST', '/v1/otp/send', credentials, {
          body: {
            phone,
            ...(clientIp !== undefined && { clientIp }),
            ...(deviceId !== undefined && { deviceId }),
          },
        })
        printSentOtp(context, options, response)
      }),
    )

  otp
    .command('resend')
    .argument('<request-id|phone>', targetHelp)
    .description('send the same code again, at least 30 seconds after the last time')
    .addOption(new Option('--channel <channel>', `channel to use: ${channels.join(', ')}`).choices(channels))
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp resend "$REQUEST_ID" --env-file .env.otpd'))
    .action((target: string, options: ResendOptions, command: Command) =>
      runCommand(command, async (context) => {
        const { api, credentials } = connectAsApplication(context, options)
        const { channel } = options
        const body = { ...toTarget(target), ...(channel !== undefined && { channel }) }
        const response = await api.asApplication('POST', '/v1/otp/resend', credentials, { body })
        printSentOtp(context, options, response)
      }),
    )

  otp
    .command('verify')
    .argument('<request-id|phone>', targetHelp)
    .argument('<code>', 'the six-digit code')
    .description('verify a code')
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp verify "$REQUEST_ID" 424242 --env-file .env.otpd'))
    .action((target: string, code: string, options: EnvFileOption, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const { api, credentials } = connectAsApplication(context, options)
        const body = { ...toTarget(target), code }
        const response = await api.asApplication('POST', '/v1/otp/verify', credentials, { body })
        const { data } = response
        output.printResult(
          response.body,
          () =>
            `${output.paint.green('✓')} ${output.paint.bold(printable(data.phone))} is verified (${output.formatTime(data.verifiedAt)})`,
        )
      }),
    )

  otp
    .command('cancel')
    .argument('<request-id|phone>', targetHelp)
    .description('cancel a pending code')
    .option('--env-file <path>', envFileHelp)
    .addHelpText('after', examples('otpd otp cancel "$REQUEST_ID" --env-file .env.otpd'))
    .action((target: string, options: EnvFileOption, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const { api, credentials } = connectAsApplication(context, options)
        const response = await api.asApplication('POST', '/v1/otp/cancel', credentials, {
          body: toTarget(target),
        })
        const phone = output.paint.bold(printable(response.data.phone))
        output.printResult(
          response.body,
          () => `${output.paint.green('✓')} The code for ${phone} is canceled`,
        )
      }),
    )

  addOtpRequestCommands(otp, runCommand)
}

function printSentOtp({ output }: Context, { envFile }: EnvFileOption, { data, body }: ApiResponse<SentOtp>) {
  const lines: [string, string | undefined][] = [
    ['Request', data.requestId],
    ['Code', data.code],
    ['Expires', output.formatTime(data.expiresAt)],
  ]
  const title = `${output.paint.green('✓')} Code sent to ${output.paint.bold(printable(data.phone))}`
  output.printResult(body, () => [title, formatFacts(lines, output.paint)].join('\n'))
  const envFileFlag = envFile === undefined ? '' : ` --env-file ${shellWord(envFile)}`
  const verifyCommand = `otpd otp verify ${data.requestId} ${data.code ?? 'CODE'}${envFileFlag}`
  output.suggestNext(...(data.code === undefined ? ['otpd inbox', verifyCommand] : [verifyCommand]))
}

/** A phone begins with + or 00; anything else is the id of a request. */
const toTarget = (text: string) => (/^(\+|00)[\d .()-]+$/.test(text) ? { phone: text } : { requestId: text })
