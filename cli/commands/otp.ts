import type { CliCommand } from './command.ts'
import { connectAsApplication, type EnvFileOption } from '../client/credentials.ts'
import { findOtpRequest, isFullId } from '../client/find.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import type { Api, ApiResponse } from '../client/api.ts'
import type { Context } from '../context.ts'
import { CliError } from '../terminal/errors.ts'
import { sentTitle } from '../client/otp-text.ts'
import type { OtpRequest, SentOtp } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { addFieldOptions, readFields, type FieldOptions } from './field-options.ts'
import { addOtpSessionCommands } from './otp-session.ts'
import { addOtpDeliverCommands } from './otp-deliver.ts'
import { addOtpProofCommands } from './otp-proofs.ts'
import { addOtpRequestCommands } from './otp-requests.ts'
import { envFileFlag, envFileOption, otpOptions, phoneHelp, templateOptions } from './otp-options.ts'

type SendOptions = SentOptions & IdempotencyOption
/** Options that the next command needs, too. */
type SentOptions = EnvFileOption & { variable?: string[] }

const targetHelp = 'request id from otp send, or the phone'

const { country, channel, challenge, clientIp, deviceId } = otpOptions

const sendOptions: FieldOptions<Omit<Route<'POST', '/v1/otp/send'>['body'], 'phone'>> = {
  ...otpOptions,
  ...templateOptions,
}

const resendOptions: FieldOptions<Omit<Route<'POST', '/v1/otp/resend'>['body'], 'requestId' | 'phone'>> = {
  country,
  channel,
  challenge,
}

const verifyOptions: FieldOptions<
  Omit<Route<'POST', '/v1/otp/verify'>['body'], 'requestId' | 'phone' | 'code'>
> = {
  country,
  clientIp,
  deviceId,
  variables: { ...templateOptions.variables, help: 'amount=… and payee=… of the payment, as in the send' },
}

const cancelOptions: FieldOptions<Omit<Route<'POST', '/v1/otp/cancel'>['body'], 'requestId' | 'phone'>> = {
  country,
}

/** Registers the otp commands. */
export function addOtpCommands(program: CliCommand) {
  const otp = program.command('otp').description('send and verify codes, as an application')

  addFieldOptions(otp.command('send'), sendOptions)
    .argument('<phone>', phoneHelp)
    .description('send a code to a phone')
    .addOption(idempotencyKeyOption())
    .addOption(envFileOption())
    .examples(
      'otpd otp send +14155550100 --env-file .env.otpd',
      "otpd otp send +14155550100 --template payment --variable amount='9.99 EUR' --variable payee='Ada Books' --env-file .env.otpd",
      'otpd otp send +14155550100 --locale pt-BR --metadata order=4711 --env-file .env.otpd',
    )
    .run(async (context, phone: string, options: SendOptions) => {
      const body = { phone, ...readFields(options, sendOptions) }
      const { api, credentials } = connectAsApplication(context, options)
      const call = { body, headers: idempotencyHeaders(options) }
      await printSentOtp(context, options, await api.asApplication('POST', '/v1/otp/send', credentials, call))
    })

  addFieldOptions(otp.command('resend'), resendOptions)
    .argument('<request-id|phone>', targetHelp)
    .description('send the same code again, at least 30 seconds after the last time')
    .addOption(idempotencyKeyOption())
    .addOption(envFileOption())
    .examples('otpd otp resend "$REQUEST_ID" --env-file .env.otpd')
    .run(async (context, text: string, options: SendOptions) => {
      const { api, credentials } = connectAsApplication(context, options)
      const fields = readFields(options, resendOptions)
      const call = {
        body: { ...(await readTarget(api, text, fields.country)), ...fields },
        headers: idempotencyHeaders(options),
      }
      await printSentOtp(
        context,
        options,
        await api.asApplication('POST', '/v1/otp/resend', credentials, call),
      )
    })

  addFieldOptions(otp.command('verify'), verifyOptions)
    .argument('<request-id|phone>', targetHelp)
    .argument('<code>', 'the six-digit code')
    .description('verify a code')
    .addOption(envFileOption())
    .examples('otpd otp verify "$REQUEST_ID" 424242 --env-file .env.otpd')
    .run(async (context, text: string, code: string, options: EnvFileOption) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const fields = readFields(options, verifyOptions)
      const body = { ...(await readTarget(api, text, fields.country)), ...fields, code }
      const response = await api.asApplication('POST', '/v1/otp/verify', credentials, { body })
      const { data } = response
      output.printResult(response.body, () =>
        output.done(
          `${output.paint.bold(printable(data.phone))} is verified (${output.formatTime(data.verifiedAt)})`,
        ),
      )
    })

  addFieldOptions(otp.command('cancel'), cancelOptions)
    .argument('<request-id|phone>', targetHelp)
    .description('cancel a pending code')
    .addOption(envFileOption())
    .examples('otpd otp cancel "$REQUEST_ID" --env-file .env.otpd')
    .run(async (context, text: string, options: EnvFileOption) => {
      const { output } = context
      const { api, credentials } = connectAsApplication(context, options)
      const fields = readFields(options, cancelOptions)
      const body = { ...(await readTarget(api, text, fields.country)), ...fields }
      const response = await api.asApplication('POST', '/v1/otp/cancel', credentials, { body })
      const phone = output.paint.bold(printable(response.data.phone))
      output.printResult(response.body, () => output.done(`The code for ${phone} is canceled`))
    })

  addOtpProofCommands(otp)
  addOtpDeliverCommands(otp)
  addOtpSessionCommands(otp)
  addOtpRequestCommands(otp)
}

/**
 * Completes a part of a request id. An application cannot list its requests, so only a login can; without one the text
 * goes to the server as it is.
 */
async function completeId(api: Api, id: string) {
  if (isFullId(id, 'otp')) return id
  return await findOtpRequest(api, id).catch((error: unknown) => {
    if (error instanceof CliError && error.code === 'NOT_LOGGED_IN') return id
    throw error
  })
}

async function printSentOtp(context: Context, options: SentOptions, { data, body }: ApiResponse<SentOtp>) {
  const { output } = context
  // Says how it was sent, for people; scripts do not wait for it.
  const request =
    output.isForPeople && data.code === undefined ? await findSent(context, options, data) : null
  const lines: [string, string | undefined][] = [
    ['Request', data.requestId],
    ['Code', data.code],
    ['Expires', output.formatTime(data.expiresAt)],
  ]
  output.printResult(body, () => output.details(sentTitle(data, request, output.paint), lines), [
    data.requestId,
  ])
  const payment = (options.variable ?? []).map((pair) => ` --variable ${shellWord(pair)}`).join('')
  const verifyCommand = `otpd otp verify ${data.requestId} ${data.code ?? 'CODE'}${payment}${envFileFlag(options)}`
  output.suggestNext(...(request?.provider === 'inbox' ? ['otpd inbox', verifyCommand] : [verifyCommand]))
}

/** Fetches the request that was just sent; null if that fails, which does not concern the code. */
async function findSent(
  context: Context,
  options: EnvFileOption,
  { requestId }: SentOtp,
): Promise<OtpRequest | null> {
  const { api, credentials } = connectAsApplication(context, options)
  const call = { params: { id: requestId } }
  return await api.asApplication('GET', '/v1/otp/:id', credentials, call).then(
    ({ data }) => data,
    () => null,
  )
}

/**
 * A phone begins with + or 00, or has seven digits and no letter, or with a country only digits: the server says why it is
 * wrong. Anything else is the id of a request, or a part of one.
 */
const readTarget = async (
  api: Parameters<typeof completeId>[0],
  text: string,
  country: string | undefined,
) =>
  /^(\+|00)[\d .()-]+$|^[ .()-]*(\d[ .()-]*){7,}$/.test(text) ||
  (country !== undefined && /^[\d .()-]+$/.test(text))
    ? { phone: text }
    : { requestId: await completeId(api, text) }
