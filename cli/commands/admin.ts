import type { CliCommand } from './command.ts'
import type { HostDeveloper } from '../../src/host/host.ts'
import { addAdminAccountCommands } from './admin-accounts.ts'
import { auditText } from './audit.ts'
import { addAdminKeyCommands } from './admin-keys.ts'
import { addAdminPhoneCommands } from './admin-phones.ts'
import { addHostFlags, hasBuiltInProvider, withHost, type HostFlags } from '../host/commands.ts'
import { findServerUrl, requireProviderOfServer } from '../host/running.ts'
import { defaultServer } from '../session/server-choice.ts'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { ask, askPassword, emailQuestion } from '../terminal/prompt.ts'
import { kept, optional } from '../terminal/table.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable, formatRemaining } from '../terminal/text.ts'

type CreateOptions = HostFlags & { email?: string; name?: string; passwordStdin?: boolean }
type AuditOptions = HostFlags & { limit?: string }
type PasswordOptions = HostFlags & { passwordStdin?: boolean }

/** Registers the operator's commands, which work on the data directory. */
export function addAdminCommands(program: CliCommand) {
  const admin = program.command('admin').description("accounts and operations (run on the server's machine)")

  addHostFlags(admin.command('create').alias('new').description('create an account'))
    .option('--email <email>', 'e-mail address to log in with')
    .option('--name <name>', "the owner's name")
    .option('--password-stdin', 'read the password from standard input')
    .examples(
      "printf 'correct horse battery' | otpd admin create --email ada@example.com --name Ada --password-stdin",
    )
    .run(async (context, options: CreateOptions) => {
      await requireProviderOfServer(context.io, options)
      const email = options.email ?? (await ask(context, emailQuestion))
      const fromInput = options.passwordStdin === true
      const needsPassword = fromInput || (await hasBuiltInProvider(context.io, options))
      const password = needsPassword ? await askPassword(context, { fromInput, repeat: true }) : undefined
      const { name } = options
      const account = {
        email,
        ...(name !== undefined && { name }),
        ...(password !== undefined && { password }),
      }
      const developer = await withHost(context, options, 'write', (host) => host.createAccount(account))
      printDeveloper(context.output, developer, 'Account')
      const server = await serverFlag(context.io, options)
      // An external provider asks for the address itself.
      const emailFlag = password === undefined ? '' : ` --email ${developer.email ?? ''}`
      context.output.suggestNext(`otpd login${server}${emailFlag}`)
    })

  addHostFlags(admin.command('list').alias('ls').description('list all accounts'))
    .examples('otpd admin list')
    .run(async (context, options: HostFlags) => {
      const accounts = await withHost(context, options, 'read', (host) => host.listAccounts())
      context.output.printData(
        accounts,
        () => listText(accounts, context.output),
        accounts.map(({ id }) => id),
      )
    })

  addHostFlags(
    admin.command('setup-token').description('print a token that creates one account within 30 minutes'),
  )
    .examples('otpd admin setup-token')
    .run(async (context, options: HostFlags) => {
      await requireProviderOfServer(context.io, options)
      const setupToken = await withHost(context, options, 'write', (host) => host.createSetupToken())
      context.output.printData(setupToken, () => setupToken.token)
      const timeLeft = formatRemaining(Date.parse(setupToken.expiresAt) - context.io.now())
      context.output.note(`Valid once, for ${timeLeft}.`)
      context.output.suggestNext(
        `otpd login${await serverFlag(context.io, options)} --setup-token ${setupToken.token}`,
      )
    })

  addHostFlags(admin.command('set-plan').description('set the plan of an account'))
    .argument('<account>', 'e-mail address or id')
    .argument('<plan>', 'free, or a plan from the configuration file')
    .examples('otpd admin set-plan ada@example.com free')
    .run(async (context, account: string, plan: string, options: HostFlags) => {
      const developer = await withHost(context, options, 'write', (host) => host.setPlan(account, plan))
      printDeveloper(context.output, developer, 'Plan set for')
    })

  addHostFlags(
    admin.command('reset-password').description('set a new password and end all sessions of an account'),
  )
    .argument('<email>', 'e-mail address of the account')
    .option('--password-stdin', 'read the password from standard input')
    .examples("printf 'another horse battery' | otpd admin reset-password ada@example.com --password-stdin")
    .run(async (context, email: string, options: PasswordOptions) => {
      const fromInput = options.passwordStdin === true
      // An external provider has the passwords: that is refused, not asked for.
      const isBuiltIn = await hasBuiltInProvider(context.io, options)
      const password = isBuiltIn ? await askPassword(context, { fromInput, repeat: true }) : ''
      const developer = await withHost(context, options, 'write', (host) =>
        host.resetPassword(email, password),
      )
      printDeveloper(context.output, developer, 'Password set for')
    })

  addAdminAccountCommands(admin, printDeveloper)
  addAdminPhoneCommands(admin)
  addAdminKeyCommands(admin)

  addHostFlags(admin.command('audit').description('show the audit log of all accounts and of the server'))
    .option('--limit <number>', 'maximum number of newest entries, 1 to 10000 (default 50)')
    .examples('otpd admin audit', 'otpd admin audit --limit 1000 --json')
    .run(async (context, options: AuditOptions) => {
      const { output } = context
      const limit = Number(options.limit ?? 50)
      if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
        throw usageError('--limit must be a number from 1 to 10000.')
      const entries = await withHost(context, options, 'read', (host) => host.listAudit({ limit }))
      output.printData(entries, () => auditText(entries, output))
    })
}

/** Names the server that runs here, if a login would not find it by itself. */
async function serverFlag(io: Io, flags: HostFlags): Promise<string> {
  const url = (await findServerUrl(io, flags)) ?? defaultServer
  return url === defaultServer ? '' : ` --server ${shellWord(url)}`
}

function printDeveloper(
  { details, done, printData, paint }: Output,
  developer: HostDeveloper,
  label: string,
) {
  printData(
    developer,
    () =>
      details(done(`${label} ${paint.bold(printable(developer.email ?? developer.id))}`), [
        ['Id', developer.id],
        ['Name', developer.name && printable(developer.name)],
        ['Plan', developer.plan],
      ]),
    [developer.id],
  )
}

function listText(developers: HostDeveloper[], { formatTable, columnTime, timeHeading }: Output) {
  if (developers.length === 0) return 'No accounts yet. Create one: otpd admin create'
  const rows = developers.map((developer) => [
    printable(developer.email ?? '-'),
    printable(developer.name ?? '-'),
    developer.status,
    developer.plan,
    columnTime(developer.createdAt),
    developer.id,
  ])
  return formatTable(
    ['EMAIL', optional('NAME'), kept('STATUS'), optional('PLAN'), optional(timeHeading('CREATED')), 'ID'],
    rows,
  )
}
