import type { CliCommand } from './command.ts'
import { connectAsApplication, type EnvFileOption } from '../client/credentials.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'
import { addFieldOptions, readFields, textOption, type FieldOptions } from './field-options.ts'
import { envFileOption, otpOptions } from './otp-options.ts'

type ProofFields = Omit<Route<'POST', '/v1/otp/proofs'>['body'], 'type' | 'token'>

const nonce = textOption('--nonce <text>', 'nonce that your backend gave to the app')

const { country, metadata, clientIp, deviceId } = otpOptions
const phone = textOption('--phone <phone>', 'number that the token must have')
const fields: FieldOptions<ProofFields> = { phone, nonce, country, metadata, clientIp, deviceId }

/** Registers `otpd otp prove` and `otpd otp test-proof`. */
export function addOtpProofCommands(otp: CliCommand) {
  addFieldOptions(otp.command('prove'), fields)
    .argument('<token>', 'token of Firebase Phone Number Verification; - reads it from standard input')
    .description('verify a phone by a proof instead of a code')
    .addOption(idempotencyKeyOption())
    .addOption(envFileOption())
    .examples('otpd otp prove - --phone +14155550100 --env-file .env.otpd < token')
    .run(async (context, token: string, options: EnvFileOption & IdempotencyOption) => {
      const { io, output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const read = token === '-' ? (await io.readInput()).trim() : token
      const body = { type: 'firebase-pnv' as const, token: read, ...readFields(options, fields) }
      const call = { body, headers: idempotencyHeaders(options) }
      const response = await api.asApplication('POST', '/v1/otp/proofs', credentials, call)
      const { phone, requestId, verifiedAt } = response.data
      output.printResult(
        response.body,
        () =>
          output.done(
            `${output.paint.bold(printable(phone))} is verified (${output.formatTime(verifiedAt)})`,
          ),
        [requestId],
      )
      output.suggestNext(`otpd otp get ${requestId}`)
    })

  addFieldOptions(otp.command('test-proof'), { nonce })
    .argument('<phone>', 'like +14155550100')
    .description('print a token for any phone, which a server in development mode accepts')
    .addOption(envFileOption())
    .examples('otpd otp test-proof +14155550100 --env-file .env.otpd | otpd otp prove - --env-file .env.otpd')
    .run(async (context, phone: string, options: EnvFileOption) => {
      const { api, credentials } = connectAsApplication(context, options)
      const body = { phone, ...readFields(options, { nonce }) }
      const response = await api.asApplication('POST', '/v1/otp/proofs/test', credentials, { body })
      context.output.printResult(response.body, () => response.data.token)
    })
}
