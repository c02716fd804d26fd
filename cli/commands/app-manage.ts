import type { Command } from 'commander'
import type { Api } from '../client/api.ts'
import { applicationText } from '../client/app-text.ts'
import { confirm } from '../terminal/confirm.ts'
import { usageError } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import { findApplication } from '../client/find.ts'
import type { RunCommand } from '../context.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'

type ApplicationChanges = Route<'PATCH', '/v1/applications/:id'>['body']

type UpdateOptions = {
  name?: string
  otpTtl?: string
  webotpDomain?: string
  androidHash?: string
  locale?: string
}

const idOrNameHelp = 'id or name of the application'

/** Registers the commands on an existing application. */
export function addAppManageCommands(app: Command, runCommand: RunCommand) {
  app
    .command('get')
    .alias('show')
    .argument('<app>', idOrNameHelp)
    .description('show an application')
    .addHelpText('after', examples('otpd app get web', 'otpd app get web --json'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { api } = connect()
        const id = await findApplication(api, idOrName)
        const response = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
        output.printResult(response.body, () => applicationText(response.data, output))
      }),
    )

  app
    .command('update')
    .argument('<app>', idOrNameHelp)
    .description('change the name, the code lifetime, or the message settings')
    .option('-n, --name <name>', 'new name, 1 to 80 characters')
    .option('--otp-ttl <seconds>', 'code lifetime, 60 to 600 seconds')
    .option(
      '--webotp-domain <host>',
      "domain whose pages may autofill the code, like example.com; '' removes it",
    )
    .option('--android-hash <hash>', "hash of the Android app that may read the message; '' removes it")
    .option('--locale <tag>', "language of messages, like en or pt-BR; '' removes it")
    .addHelpText(
      'after',
      examples(
        'otpd app update web --otp-ttl 120',
        'otpd app update web --locale de --webotp-domain example.com',
      ),
    )
    .action((idOrName: string, options: UpdateOptions, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const body = readChanges(options)
        const response = await updateApplication(connect().api, idOrName, body)
        output.printResult(response.body, () =>
          [`${output.paint.green('✓')} Application updated`, applicationText(response.data, output)].join(
            '\n',
          ),
        )
      }),
    )

  app
    .command('enable')
    .argument('<app>', idOrNameHelp)
    .description('enable a disabled application')
    .addHelpText('after', examples('otpd app enable shop'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const response = await updateApplication(connect().api, idOrName, { status: 'active' })
        const name = output.paint.bold(printable(response.data.name))
        output.printResult(response.body, () => `${output.paint.green('✓')} Application ${name} is active`)
      }),
    )

  app
    .command('disable')
    .argument('<app>', idOrNameHelp)
    .description('reject calls with its credentials until it is enabled again')
    .addHelpText('after', examples('otpd app disable shop'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const response = await updateApplication(connect().api, idOrName, { status: 'disabled' })
        const name = output.paint.bold(printable(response.data.name))
        output.printResult(response.body, () => `${output.paint.green('✓')} Application ${name} is disabled`)
        output.suggestNext(`otpd app enable ${response.data.id}`)
      }),
    )

  app
    .command('delete')
    .alias('rm')
    .argument('<app>', idOrNameHelp)
    .description('delete an application, its credentials and its webhooks')
    .addHelpText('after', examples('otpd app delete shop --yes'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      runCommand(command, async (context) => {
        const { connect, output } = context
        const { api } = connect()
        const id = await confirm(context, {
          find: () => findApplication(api, idOrName),
          async describe(id) {
            const { data } = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
            const appLabel = `${printable(data.name)} (${data.environment})`
            return {
              question: `Delete the application ${appLabel}? Its credentials stop working at once.`,
              name: data.name,
            }
          },
        })
        const response = await api.asDeveloper('DELETE', '/v1/applications/:id', { params: { id } })
        const name = output.paint.bold(printable(idOrName))
        output.printResult(response.body, () => `${output.paint.green('✓')} Application ${name} deleted`)
      }),
    )

  app
    .command('secret')
    .argument('<app>', idOrNameHelp)
    .description('print the secret that signs the webhooks of an application')
    .addHelpText('after', examples('otpd app secret web'))
    .action((idOrName: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { api } = connect()
        const id = await findApplication(api, idOrName)
        const response = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', {
          params: { id },
        })
        output.printResult(response.body, () => response.data.webhookSecret)
      }),
    )
}

async function updateApplication(api: Api, idOrName: string, body: ApplicationChanges) {
  const id = await findApplication(api, idOrName)
  return await api.asDeveloper('PATCH', '/v1/applications/:id', { params: { id }, body })
}

function readChanges({ name, otpTtl, webotpDomain, androidHash, locale }: UpdateOptions): ApplicationChanges {
  if (otpTtl !== undefined && !/^\d{1,6}$/.test(otpTtl))
    throw usageError('--otp-ttl must be a number of seconds from 60 to 600.')
  const changes = {
    ...(name !== undefined && { name }),
    ...(otpTtl !== undefined && { otpTtlSeconds: Number(otpTtl) }),
    ...(webotpDomain !== undefined && { webOtpDomain: webotpDomain || null }),
    ...(androidHash !== undefined && { androidAppHash: androidHash || null }),
    ...(locale !== undefined && { defaultLocale: locale || null }),
  }
  if (Object.keys(changes).length === 0)
    throw usageError(
      'There is nothing to change.',
      'Pass --name, --otp-ttl, --webotp-domain, --android-hash or --locale.',
    )
  return changes
}
