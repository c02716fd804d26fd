import type { CliCommand } from './command.ts'
import type { HostDeveloper } from '../../src/host/host.ts'
import { confirm } from '../terminal/confirm.ts'
import type { Context } from '../context.ts'
import { findServerUrl } from '../host/running.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import type { Output } from '../terminal/output.ts'
import { chooseServer } from '../session/server-choice.ts'
import { printable, formatRemaining } from '../terminal/text.ts'

type PrintDeveloper = (output: Output, developer: HostDeveloper, label: string) => void

/** Registers the commands for existing accounts, and for the key that signs their tokens. */
export function addAdminAccountCommands(admin: CliCommand, printDeveloper: PrintDeveloper) {
  addHostFlags(admin.command('disable').description('block an account and end its sessions'))
    .argument('<account>', 'e-mail address or id')
    .examples('otpd admin disable bob@example.com --yes')
    .run(async (context, account: string, options: HostFlags) => {
      const question = 'Disable this account? Its sessions end, and calls of its applications are rejected.'
      const id = await confirmAccount(context, options, account, { question, isReversible: true })
      const developer = await withHost(context, options, 'write', (host) => host.disable(id))
      printDeveloper(context.output, developer, 'Disabled')
      context.output.suggestNext(`otpd admin enable ${developer.email ?? developer.id}`)
    })

  addHostFlags(admin.command('enable').description('unblock a disabled account'))
    .argument('<account>', 'e-mail address or id')
    .examples('otpd admin enable bob@example.com')
    .run(async (context, account: string, options: HostFlags) => {
      const developer = await withHost(context, options, 'write', (host) => host.enable(account))
      printDeveloper(context.output, developer, 'Enabled')
    })

  addHostFlags(
    admin.command('reset-totp').description('remove the second factor of an account whose device is lost'),
  )
    .argument('<account>', 'e-mail address or id')
    .examples('otpd admin reset-totp ada@example.com')
    .run(async (context, account: string, options: HostFlags) => {
      const developer = await withHost(context, options, 'write', (host) => host.resetTotp(account))
      printDeveloper(context.output, developer, 'TOTP removed from')
      context.output.note('Its next login needs the password alone.')
    })

  addHostFlags(admin.command('delete').alias('rm').description('delete an account and end its sessions'))
    .argument('<account>', 'e-mail address or id')
    .examples('otpd admin delete bob@example.com --yes')
    .run(async (context, account: string, options: HostFlags) => {
      const { output } = context
      const question =
        'Delete this account? It cannot be logged in to again, and calls of its applications are rejected.'
      const id = await confirmAccount(context, options, account, { question })
      const deletion = await withHost(context, options, 'write', (host) => host.deleteAccount(id))
      output.printData(deletion, () => output.done(`Deleted ${output.paint.bold(printable(account))}`))
      output.note(
        `Its password, name, e-mail address and sessions were removed.\n` +
          `Kept under ${deletion.id}: projects (${deletion.projects}), applications (${deletion.applications}),\n` +
          'whose calls are rejected, and the records of their codes.',
      )
    })

  addHostFlags(
    admin
      .command('rotate-signing-key')
      .description('sign ID tokens with a new key; existing tokens stay valid until they expire'),
  )
    .examples('otpd admin rotate-signing-key')
    .run(async (context, options: HostFlags) => {
      const { output } = context
      const signingKey = await withHost(context, options, 'write', (host) => host.rotateSigningKey())
      output.printData(signingKey, () =>
        output.done(`ID tokens are now signed with a new key\n  ${signingKey.kid}`),
      )
      output.note('Tokens signed with the old key are accepted until they expire, within 15 minutes.')
    })

  addHostFlags(admin.command('token').description('print an ID token for a script, without logging in'))
    .argument('<account>', 'e-mail address or id')
    .examples('OTPD_TOKEN="$(otpd admin token ada@example.com --quiet)" otpd project list')
    .run(async (context, account: string, options: HostFlags) => {
      const { io, flags, output } = context
      const { url, source } = chooseServer(io, { flag: flags.server })
      const named = source === 'the default' ? undefined : url
      const running = await findServerUrl(io, options)
      const token = await withHost(context, options, 'write', (host) =>
        host.issueToken(account, { running, named }),
      )
      output.printData(token, () => token.idToken)
      output.note(`Valid for ${formatRemaining(Date.parse(token.expiresAt) - io.now())}.`)
    })
}

const confirmAccount = (
  context: Context,
  options: HostFlags,
  account: string,
  { question, isReversible = false }: { question: string; isReversible?: boolean },
) =>
  confirm(context, {
    isReversible,
    find: async () => (await withHost(context, options, 'read', (host) => host.findAccount(account))).id,
    describe: async (id) => {
      const { email } = await withHost(context, options, 'read', (host) => host.findAccount(id))
      return { question, name: email ?? id }
    },
  })
