import type { CliCommand } from './command.ts'
import { logIn, type LoginOptions } from '../session/login.ts'
import { logOut } from '../session/logout.ts'
import { isOutOfScope } from '../terminal/errors.ts'
import { printable } from '../terminal/text.ts'

/** Registers login, logout, whoami and auth. */
export function addAccountCommands(program: CliCommand) {
  program
    .command('login')
    .description('log in to a server; prompts for missing values')
    .option('--email <email>', 'e-mail address of the account')
    .option('--password-stdin', 'read the password from standard input')
    .option('--totp <code>', 'code of your authenticator app, or a recovery code, if TOTP is enabled')
    .option('--setup-token-file <path>', 'create an account with the setup token in this file')
    .option('--setup-token <token>', 'create an account with this setup token')
    .option('--name <name>', 'your name, for a new account')
    .option('--device', "log in at the operator's OpenID provider with a browser on another device")
    .option(
      '--callback-port <port>',
      'port that the browser returns to, if the provider requires a fixed one',
    )
    .option('--token-stdin', 'read an ID token or an API token from standard input')
    .examples(
      'otpd login',
      'otpd login --server http://127.0.0.1:8080 --email ada@example.com --password-stdin < password',
      'otpd login --setup-token-file "$OTPD_DATA_DIR/setup-token"',
      'otpd login --device',
      'otpd login --server https://otp.example.com --token-stdin < token',
    )
    .run((context, options: LoginOptions) => logIn(context, options))

  program
    .command('logout')
    .description('end the session here and on the server')
    .examples('otpd logout')
    .run((context) => logOut(context, context.connect()))

  program
    .command('whoami')
    .description('show who is logged in, and to which server')
    .examples('otpd whoami', 'otpd whoami --json')
    .run(async ({ connect, output }) => {
      const { api, server, tokens } = connect()
      const developer = await api.asDeveloper('GET', '/v1/developer/me').catch((error: unknown) => {
        if (output.isForPeople && isOutOfScope(error)) return null
        throw error
      })
      const token = await tokens.current()
      const { paint } = output
      const account = developer?.data
      output.printResult(developer?.body ?? '', () =>
        output.details(paint.bold(printable(account ? (account.email ?? account.id) : 'API token')), [
          ['Account', account ? undefined : 'its scopes do not include reading it'],
          ['Name', account?.name && printable(account.name)],
          ['Id', account?.id],
          ['Plan', account && printable(account.plan)],
          ['Virtual phone', account?.virtualPhoneNumber],
          ['Server', `${server.url} (${server.source})`],
          ['Token from', token?.source],
          ['Token expires', token?.expiresAt && output.formatTime(token.expiresAt)],
          ['Session ends', token?.sessionEndsAt && `${output.formatTime(token.sessionEndsAt)}, if unused`],
        ]),
      )
    })

  const auth = program.command('auth').description('ID token for calls to the API')
  auth
    .command('token')
    .description('print a valid ID token, renewed if necessary')
    .examples(
      'otpd auth token',
      'curl -H "Authorization: Bearer $(otpd auth token)" "$OTPD_SERVER/v1/projects"',
    )
    .run(async ({ connect, output }) => {
      const { tokens } = connect()
      const token = await tokens.current()
      if (token === null) throw tokens.notLoggedInError()
      const { value, expiresAt } = token
      output.printData({ idToken: value, expiresAt }, () => value)
    })
}
