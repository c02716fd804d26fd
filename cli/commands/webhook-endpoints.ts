import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import { usageError } from '../terminal/errors.ts'
import { readEvents } from '../webhooks/event-kinds.ts'
import { examples } from '../examples.ts'
import { findApplication } from '../client/find.ts'
import { addListOptions, listQuery, noteMore, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { WebhookEndpoint } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { facts, printable, type Paint } from '../terminal/text.ts'
import { eventsText } from '../terminal/webhook-text.ts'

type CreateOptions = { app: string; url: string; events: string; description?: string }
type UpdateOptions = { url?: string; events?: string; description?: string }
type Changes = Route<'PATCH', '/v1/webhooks/:id'>['body']

const idHelp = 'its id, whk_…'
const eventsHelp = 'which events, like otp.verified,otp.failed, or * for all'

/** Where events are sent. An endpoint has no name: it goes by its id. */
export function addEndpointCommands(webhook: Command, run: Run) {
  webhook
    .command('create')
    .alias('new')
    .description('have events of an application sent to a URL, signed with its webhook secret')
    .requiredOption('--app <id|name>', 'the application')
    .requiredOption('--url <url>', 'https, and a public address')
    .requiredOption('--events <kinds>', eventsHelp)
    .option('-d, --description <text>', 'up to 280 characters')
    .addHelpText(
      'after',
      examples(
        'otpd webhook create --app web --url https://shop.example.com/hooks --events otp.verified,otp.failed',
      ),
    )
    .action((options: CreateOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { app, url, description } = options
        const events = readEvents(options.events)
        const { api } = connect()
        const appId = await findApplication(api, app)
        const body = { appId, url, events, ...(description !== undefined && { description }) }
        const created = await api.asDeveloper('POST', '/v1/webhooks', { body })
        output.answer(created.body, () =>
          [`${output.paint.green('✓')} Webhook created`, endpointText(created.data, output)].join('\n'),
        )
        output.next(`otpd webhook test ${created.data.id}`, `otpd app secret ${appId}`)
      }),
    )

  addListOptions(webhook.command('list').alias('ls').description('list your endpoints, newest first'))
    .option('--app <id|name>', 'only of this application')
    .addHelpText('after', examples('otpd webhook list', 'otpd webhook list --app web --json'))
    .action((options: ListOptions & { app?: string }, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { api } = connect()
        const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
        const query = { ...listQuery(options), appId }
        const found = await api.asDeveloper('GET', '/v1/webhooks', { query })
        output.answer(found.body, () => listText(found.data, output))
        noteMore(output, found)
      }),
    )

  webhook
    .command('get')
    .alias('show')
    .argument('<webhook>', idHelp)
    .description('show an endpoint')
    .addHelpText('after', examples('otpd webhook get "$WEBHOOK_ID"'))
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const found = await connect().api.asDeveloper('GET', '/v1/webhooks/:id', { params: { id } })
        output.answer(found.body, () => endpointText(found.data, output))
      }),
    )

  webhook
    .command('update')
    .argument('<webhook>', idHelp)
    .description('change where events go, or which')
    .option('--url <url>', 'https, and a public address')
    .option('--events <kinds>', eventsHelp)
    .option('-d, --description <text>', "up to 280 characters; '' removes it")
    .addHelpText('after', examples('otpd webhook update "$WEBHOOK_ID" --events \'*\''))
    .action((id: string, options: UpdateOptions, command: Command) =>
      run(command, async ({ connect, output }) => {
        const body = readChanges(options)
        const changed = await connect().api.asDeveloper('PATCH', '/v1/webhooks/:id', { params: { id }, body })
        output.answer(changed.body, () =>
          [`${output.paint.green('✓')} Webhook updated`, endpointText(changed.data, output)].join('\n'),
        )
      }),
    )

  for (const [verb, status, description] of [
    ['enable', 'enabled', 'send events to an endpoint again'],
    ['disable', 'disabled', 'send nothing to an endpoint until it is enabled again'],
  ] as const) {
    webhook
      .command(verb)
      .argument('<webhook>', idHelp)
      .description(description)
      .addHelpText('after', examples(`otpd webhook ${verb} "$WEBHOOK_ID"`))
      .action((id: string, _options: unknown, command: Command) =>
        run(command, async ({ connect, output }) => {
          const call = { params: { id }, body: { status } }
          const changed = await connect().api.asDeveloper('PATCH', '/v1/webhooks/:id', call)
          const url = output.paint.bold(printable(changed.data.url))
          output.answer(changed.body, () => `${output.paint.green('✓')} ${url} is ${changed.data.status}`)
        }),
      )
  }

  webhook
    .command('delete')
    .alias('rm')
    .argument('<webhook>', idHelp)
    .description('delete an endpoint and what is on its way there')
    .addHelpText('after', examples('otpd webhook delete "$WEBHOOK_ID" --yes'))
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async (context) => {
        const { connect, output } = context
        const { api } = connect()
        await confirm(context, {
          find: async () => id,
          async describe() {
            const { data } = await api.asDeveloper('GET', '/v1/webhooks/:id', { params: { id } })
            const { host } = new URL(data.url)
            return { question: `Delete the webhook to ${printable(data.url)}?`, name: host }
          },
        })
        const gone = await api.asDeveloper('DELETE', '/v1/webhooks/:id', { params: { id } })
        output.answer(gone.body, () => `${output.paint.green('✓')} Webhook ${printable(id)} deleted`)
      }),
    )
}

function readChanges({ url, events, description }: UpdateOptions): Changes {
  const changes = {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events: readEvents(events) }),
    ...(description !== undefined && { description: description || null }),
  }
  if (Object.keys(changes).length === 0)
    throw usageError('Nothing to change.', 'Pass --url, --events or --description.')
  return changes
}

/** Failing is told in words: an endpoint that is enabled and gets nothing is the one to look at. */
function paintStatus({ status, disabledReason, failingSince }: WebhookEndpoint, paint: Paint) {
  if (status === 'disabled')
    return paint.red(`○ disabled${disabledReason === null ? '' : ` (${printable(disabledReason)})`}`)
  return failingSince === null ? paint.green('● enabled') : paint.yellow('▲ failing')
}

function listText(endpoints: WebhookEndpoint[], { paint, table }: Output) {
  if (endpoints.length === 0)
    return 'No webhooks yet. Create one:\n  otpd webhook create --app APP --url URL --events otp.verified'
  const rows = endpoints.map((one) => [one.id, paintStatus(one, paint), printable(one.url), eventsText(one)])
  return table(['ID', 'STATUS', 'URL', 'EVENTS'], rows)
}

function endpointText(one: WebhookEndpoint, { paint, when }: Output) {
  const headers = Object.keys(one.headers).map((name) => `${printable(name)}: ****`)
  const lines: [string, string | null][] = [
    ['Id', one.id],
    ['Application', one.appId],
    ['Status', paintStatus(one, paint)],
    ['Events', eventsText(one)],
    ['Description', one.description && printable(one.description)],
    ['Headers', headers.length === 0 ? null : headers.join(', ')],
    ['Failing since', one.failingSince && when(one.failingSince)],
    ['Last delivery', one.lastDeliveryAt && when(one.lastDeliveryAt)],
    ['Created', when(one.createdAt)],
    ['Updated', when(one.updatedAt)],
  ]
  return [paint.bold(printable(one.url)), facts(lines, paint)].join('\n')
}
