import type { Command } from 'commander'
import type { HostDeveloper } from '../../src/host/host.ts'
import { confirm } from '../terminal/confirm.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import { addHostFlags, withHost, type HostFlags } from '../host/commands.ts'
import type { Output } from '../terminal/output.ts'
import { chooseServer } from '../session/server-choice.ts'
import { printable, formatRemaining } from '../terminal/text.ts'

type PrintDeveloper = (output: Output, developer: HostDeveloper, label: string) => void

/** What is done to accounts that are there, and the key that their tokens are signed with. */
export function addAdminAccountCommands(
  admin: Command,
  runCommand: RunCommand,
  printDeveloper: PrintDeveloper,
) {
  addHostFlags(admin.command('disable').description('shut an account out and end its sessions'))
    .argument('<account>', 'its e-mail address or id')
    .addHelpText('after', examples('otpd admin disable bob@example.com --yes'))
    .action((account: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const question = 'Disable this account? Its sessions end, and its applications are refused.'
        const id = await confirmAccount(context, options, account, question)
        const developer = await withHost(context, options, (host) => host.disable(id))
        printDeveloper(context.output, developer, 'Disabled')
        context.output.suggestNext(`otpd admin enable ${developer.email ?? developer.id}`)
      }),
    )

  addHostFlags(admin.command('enable').description('let a disabled account in again'))
    .argument('<account>', 'its e-mail address or id')
    .addHelpText('after', examples('otpd admin enable bob@example.com'))
    .action((account: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const developer = await withHost(context, options, (host) => host.enable(account))
        printDeveloper(context.output, developer, 'Enabled')
      }),
    )

  addHostFlags(admin.command('delete').alias('rm').description('remove an account and end its sessions'))
    .argument('<account>', 'its e-mail address or id')
    .addHelpText('after', examples('otpd admin delete bob@example.com --yes'))
    .action((account: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const question =
          'Delete this account? Nobody can log in to it again, and its applications are refused.'
        const id = await confirmAccount(context, options, account, question)
        const deletion = await withHost(context, options, (host) => host.deleteAccount(id))
        output.printResult(
          JSON.stringify({ data: deletion }),
          () => `${output.paint.green('✓')} Deleted ${output.paint.bold(printable(account))}`,
        )
        output.note(
          `Its password, name, address and sessions are gone.\n` +
            `What stays, under ${deletion.id}: projects (${deletion.projects}), applications (${deletion.applications}),\n` +
            'which are refused, and the records of their codes.',
        )
      }),
    )

  addHostFlags(
    admin.command('rotate-signing-key').description('sign ID tokens with a new key; old ones run out'),
  )
    .addHelpText('after', examples('otpd admin rotate-signing-key'))
    .action((options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const signingKey = await withHost(context, options, (host) => host.rotateSigningKey())
        output.printResult(
          JSON.stringify({ data: signingKey }),
          () => `${output.paint.green('✓')} ID tokens are signed with a new key\n  ${signingKey.kid}`,
        )
        output.note('Tokens of the old key are accepted until they expire, within 15 minutes.')
      }),
    )

  addHostFlags(admin.command('token').description('print an ID token for a script, without a login'))
    .argument('<account>', 'its e-mail address or id')
    .addHelpText(
      'after',
      examples('OTPD_TOKEN="$(otpd admin token ada@example.com --quiet)" otpd project list'),
    )
    .action((account: string, options: HostFlags, command: Command) =>
      runCommand(command, async (context) => {
        const { io, flags, output } = context
        const { url, source } = chooseServer(io, { flag: flags.server })
        const server = source === 'the default' ? undefined : url
        const token = await withHost(context, options, (host) => host.issueToken(account, server))
        output.printResult(JSON.stringify({ data: token }), () => token.idToken)
        output.note(`Valid for ${formatRemaining(Date.parse(token.expiresAt) - io.now())}.`)
      }),
    )
}

const confirmAccount = (context: Context, options: HostFlags, account: string, question: string) =>
  confirm(context, {
    find: async () => (await withHost(context, options, (host) => host.findAccount(account))).id,
    describe: async (id) => {
      const { email } = await withHost(context, options, (host) => host.findAccount(id))
      return { question, name: email ?? id }
    },
  })
