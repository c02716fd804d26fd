import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { findFieldFault } from '../terminal/errors.ts'
import type { Route } from '../client/routes.ts'
import { ask, askUntilAccepted, readSecret, totpQuestion } from '../terminal/prompt.ts'

type EnableOptions = { code?: string }
type DisableOptions = { code?: string; passwordStdin?: boolean }

/** Registers the commands for the second factor of the developer's own account. */
export function addTotpCommands(profile: CliCommand) {
  const totp = profile
    .command('totp')
    .description('second factor of your logins: codes of an authenticator app')

  totp
    .command('enable')
    .description('show a secret for your authenticator app, and enable it with its first code')
    .option('--code <code>', 'enable the secret that was shown before, without prompting')
    .examples('otpd profile totp enable', 'otpd profile totp enable --code 123456')
    .run(async (context, options: EnableOptions) => {
      if (options.code !== undefined) return await confirmTotp(context, options.code)
      const { body, data } = await context.api.asDeveloper('POST', '/v1/developer/me/totp')
      // Without a terminal the secret is the result, and a second call confirms it.
      if (!context.mayAsk) {
        context.output.printResult(body, () => `Secret  ${data.secret}\nURI     ${data.uri}`)
        context.output.suggestNext('otpd profile totp enable --code CODE')
        return
      }
      const { renderUnicodeCompact } = await import('uqr')
      context.output.note('Scan this with your authenticator app:')
      // Drawn for a dark terminal. On a light one it is inverted, which authenticator apps read too.
      context.output.note(renderUnicodeCompact(data.uri, { border: 2 }))
      context.output.note(`or type this secret into it: ${data.secret}`)
      const question = { label: 'Code', flag: '--code CODE', hint: 'that the app shows now' }
      // Not a new secret, which the app would have to scan again.
      await askUntilAccepted(
        context,
        () => ask(context, question),
        (code) => confirmTotp(context, code),
        (error) => findFieldFault(error, 'code'),
      )
    })

  totp
    .command('disable')
    .description('log in with the password alone again')
    .option('--code <code>', 'code of your authenticator app, or a recovery code')
    .option('--password-stdin', 'prove yourself with the password, read from standard input')
    .examples('otpd profile totp disable --code 123456')
    .run(async (context, options: DisableOptions) => {
      const { api } = context.connect()
      const { output } = context
      const response = await withProof(context, options, (body) =>
        api.asDeveloper('DELETE', '/v1/developer/me/totp', { body }),
      )
      output.printResult(response.body, () => output.done('TOTP disabled'))
    })
}

async function confirmTotp({ api, output }: Context, code: string) {
  const body = { code: code.replaceAll(/\s/g, '') }
  const response = await api.asDeveloper('POST', '/v1/developer/me/totp/confirm', { body })
  output.printResult(response.body, () =>
    [output.done('TOTP enabled. Recovery codes:'), ...response.data.recoveryCodes].join('\n'),
  )
  output.note('Keep them in a safe place: each replaces a code once, and they are not shown again.')
}

/** Makes a call with the code or the password, and prompts for the code until it is accepted if neither is given. */
async function withProof<T>(
  context: Context,
  { code, passwordStdin }: DisableOptions,
  call: (proof: Route<'DELETE', '/v1/developer/me/totp'>['body']) => Promise<T>,
): Promise<T> {
  if (code !== undefined) return await call({ code })
  if (passwordStdin === true) return await call({ password: await readSecret(context.io, 'password') })
  return await askUntilAccepted(
    context,
    () => ask(context, { ...totpQuestion, flag: '--code CODE or --password-stdin' }),
    (typed) => call({ code: typed }),
    (error) => findFieldFault(error, 'code'),
  )
}
