import type { Command } from 'commander'
import type { Api } from '../client/api.ts'
import { applicationText } from '../terminal/app-text.ts'
import { confirm } from '../terminal/confirm.ts'
import { usageError } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import { findApplication } from '../client/find.ts'
import type { Run } from '../program.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'

type Changes = Route<'PATCH', '/v1/applications/:id'>['body']

type UpdateOptions = {
  name?: string
  otpTtl?: string
  webotpDomain?: string
  androidHash?: string
  locale?: string
}

const idOrNameHelp = 'its id or name'

/** What is done with an application that there is already. */
export function addAppManageCommands(app: Command, run: Run) {
  app
    .command('get')
    .alias('show')
    .argument('<app>', idOrNameHelp)
    .description('show an application')
    .addHelpText('after', examples('otpd app get web', 'otpd app get web --json'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { api } = connect()
        const id = await findApplication(api, idOrName)
        const found = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
        output.answer(found.body, () => applicationText(found.data, output))
      }),
    )

  app
    .command('update')
    .argument('<app>', idOrNameHelp)
    .description('change the name, how long codes live, or what messages say')
    .option('-n, --name <name>', '1 to 80 characters')
    .option('--otp-ttl <seconds>', 'how long a code is good for, 60 to 600')
    .option('--webotp-domain <host>', "whose pages may fill in the code, like example.com; '' removes it")
    .option('--android-hash <hash>', "the Android app that may read the message; '' removes it")
    .option('--locale <tag>', "the language of messages, like en or pt-BR; '' removes it")
    .addHelpText(
      'after',
      examples(
        'otpd app update web --otp-ttl 120',
        'otpd app update web --locale de --webotp-domain example.com',
      ),
    )
    .action((idOrName: string, options: UpdateOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const body = readChanges(options)
        const changed = await change(connect().api, idOrName, body)
        output.answer(changed.body, () =>
          [`${output.paint.green('✓')} Application updated`, applicationText(changed.data, output)].join(
            '\n',
          ),
        )
      }),
    )

  app
    .command('enable')
    .argument('<app>', idOrNameHelp)
    .description('let a disabled application work again')
    .addHelpText('after', examples('otpd app enable shop'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const changed = await change(connect().api, idOrName, { status: 'active' })
        const name = output.paint.bold(printable(changed.data.name))
        output.answer(changed.body, () => `${output.paint.green('✓')} Application ${name} is active`)
      }),
    )

  app
    .command('disable')
    .argument('<app>', idOrNameHelp)
    .description('refuse every call with its credentials until it is enabled again')
    .addHelpText('after', examples('otpd app disable shop'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const changed = await change(connect().api, idOrName, { status: 'disabled' })
        const name = output.paint.bold(printable(changed.data.name))
        output.answer(changed.body, () => `${output.paint.green('✓')} Application ${name} is disabled`)
        output.next(`otpd app enable ${changed.data.id}`)
      }),
    )

  app
    .command('delete')
    .alias('rm')
    .argument('<app>', idOrNameHelp)
    .description('delete an application, its credentials and its webhooks')
    .addHelpText('after', examples('otpd app delete shop --yes'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      run(command, async (context) => {
        const { connect, output } = context
        const { api } = connect()
        const id = await confirm(context, {
          find: () => findApplication(api, idOrName),
          async describe(id) {
            const { data } = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
            const what = `${printable(data.name)} (${data.environment})`
            return {
              question: `Delete the application ${what}? Its credentials stop working at once.`,
              name: data.name,
            }
          },
        })
        const gone = await api.asDeveloper('DELETE', '/v1/applications/:id', { params: { id } })
        const name = output.paint.bold(printable(idOrName))
        output.answer(gone.body, () => `${output.paint.green('✓')} Application ${name} deleted`)
      }),
    )

  app
    .command('secret')
    .argument('<app>', idOrNameHelp)
    .description('print the secret that webhooks of an application are signed with')
    .addHelpText('after', examples('otpd app secret web'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { api } = connect()
        const id = await findApplication(api, idOrName)
        const found = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })
        output.answer(found.body, () => found.data.webhookSecret)
      }),
    )
}

async function change(api: Api, idOrName: string, body: Changes) {
  const id = await findApplication(api, idOrName)
  return await api.asDeveloper('PATCH', '/v1/applications/:id', { params: { id }, body })
}

function readChanges({ name, otpTtl, webotpDomain, androidHash, locale }: UpdateOptions): Changes {
  if (otpTtl !== undefined && !/^\d{1,6}$/.test(otpTtl))
    throw usageError('--otp-ttl is a number of seconds from 60 to 600.')
  const changes = {
    ...(name !== undefined && { name }),
    ...(otpTtl !== undefined && { otpTtlSeconds: Number(otpTtl) }),
    ...(webotpDomain !== undefined && { webOtpDomain: webotpDomain || null }),
    ...(androidHash !== undefined && { androidAppHash: androidHash || null }),
    ...(locale !== undefined && { defaultLocale: locale || null }),
  }
  if (Object.keys(changes).length === 0)
    throw usageError(
      'Nothing to change.',
      'Pass --name, --otp-ttl, --webotp-domain, --android-hash or --locale.',
    )
  return changes
}
