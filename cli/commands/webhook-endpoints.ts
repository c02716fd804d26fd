import type { Command } from 'commander'
import { confirm } from '../terminal/confirm.ts'
import {
  addChangeOptions,
  nullableOption,
  readChanges,
  textOption,
  type ChangeOptions,
} from './change-options.ts'
import { readEvents } from '../webhooks/read-events.ts'
import { examples } from '../help.ts'
import { findApplication } from '../client/find.ts'
import { addListOptions, listQuery, printNextPageHint, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { RunCommand } from '../context.ts'
import type { WebhookEndpoint } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { formatFacts, printable, type Paint } from '../terminal/text.ts'
import { eventsText } from '../client/webhook-text.ts'

type CreateOptions = { app: string; url: string; events: string; description?: string }
type EndpointChanges = Route<'PATCH', '/v1/webhooks/:id'>['body']

const idHelp = 'id of the endpoint, whk_…'
const urlHelp = 'https URL at a public address'
const eventsHelp = 'event types, like otp.verified,otp.failed, or * for all'

/**
 * The commands `enable` and `disable` set the status. No option sets headers: their values are credentials, which do
 * not belong in the shell's history.
 */
const changeOptions: ChangeOptions<Omit<EndpointChanges, 'status' | 'headers'>> = {
  url: textOption('--url <url>', urlHelp),
  events: { flags: '--events <types>', help: eventsHelp, parse: readEvents },
  description: nullableOption('-d, --description <text>', 'new description, up to 280 characters'),
}

/** Registers the commands for endpoints. An endpoint has no name, only an id. */
export function addEndpointCommands(webhook: Command, runCommand: RunCommand) {
  webhook
    .command('create')
    .alias('new')
    .description("send an application's events to a URL, signed with its webhook secret")
    .requiredOption('--app <id|name>', 'application whose events to send')
    .requiredOption('--url <url>', urlHelp)
    .requiredOption('--events <types>', eventsHelp)
    .option('-d, --description <text>', 'description, up to 280 characters')
    .addHelpText(
      'after',
      examples(
        'otpd webhook create --app web --url https://shop.example.com/hooks --events otp.verified,otp.failed',
      ),
    )
    .action((options: CreateOptions, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { app, url, description } = options
        const events = readEvents(options.events)
        const { api } = connect()
        const appId = await findApplication(api, app)
        const body = { appId, url, events, ...(description !== undefined && { description }) }
        const response = await api.asDeveloper('POST', '/v1/webhooks', { body })
        output.printResult(response.body, () =>
          [`${output.paint.green('✓')} Webhook created`, endpointText(response.data, output)].join('\n'),
        )
        output.suggestNext(`otpd webhook test ${response.data.id}`, `otpd app secret ${appId}`)
      }),
    )

  addListOptions(webhook.command('list').alias('ls').description('list your endpoints, newest first'))
    .option('--app <id|name>', 'only endpoints of this application')
    .addHelpText('after', examples('otpd webhook list', 'otpd webhook list --app web --json'))
    .action((options: ListOptions & { app?: string }, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { api } = connect()
        const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
        const query = { ...listQuery(options), appId }
        const response = await api.asDeveloper('GET', '/v1/webhooks', { query })
        output.printResult(response.body, () => listText(response.data, output))
        printNextPageHint(output, response)
      }),
    )

  webhook
    .command('get')
    .alias('show')
    .argument('<webhook>', idHelp)
    .description('show an endpoint')
    .addHelpText('after', examples('otpd webhook get "$WEBHOOK_ID"'))
    .action((id: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const response = await connect().api.asDeveloper('GET', '/v1/webhooks/:id', { params: { id } })
        output.printResult(response.body, () => endpointText(response.data, output))
      }),
    )

  addChangeOptions(webhook.command('update'), changeOptions)
    .argument('<webhook>', idHelp)
    .description('change the URL, event types or description of an endpoint')
    .addHelpText('after', examples('otpd webhook update "$WEBHOOK_ID" --events \'*\''))
    .action((id: string, _options: unknown, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const body = readChanges(command, changeOptions)
        const response = await connect().api.asDeveloper('PATCH', '/v1/webhooks/:id', {
          params: { id },
          body,
        })
        const dropped = response.data.droppedHeaders?.map(printable).join(', ')
        if (dropped !== undefined)
          output.warn(
            `The URL has another origin, so these headers were removed: ${dropped}. Set them again with: otpd api PATCH /v1/webhooks/${response.data.id}`,
          )
        output.printResult(response.body, () =>
          [`${output.paint.green('✓')} Webhook updated`, endpointText(response.data, output)].join('\n'),
        )
      }),
    )

  for (const [verb, status, description] of [
    ['enable', 'enabled', 'enable a disabled endpoint'],
    ['disable', 'disabled', 'stop sending events to an endpoint until it is enabled again'],
  ] as const) {
    webhook
      .command(verb)
      .argument('<webhook>', idHelp)
      .description(description)
      .addHelpText('after', examples(`otpd webhook ${verb} "$WEBHOOK_ID"`))
      .action((id: string, _options: unknown, command: Command) =>
        runCommand(command, async ({ connect, output }) => {
          const call = { params: { id }, body: { status } }
          const response = await connect().api.asDeveloper('PATCH', '/v1/webhooks/:id', call)
          const url = output.paint.bold(printable(response.data.url))
          output.printResult(
            response.body,
            () => `${output.paint.green('✓')} ${url} is ${response.data.status}`,
          )
        }),
      )
  }

  webhook
    .command('delete')
    .alias('rm')
    .argument('<webhook>', idHelp)
    .description('delete an endpoint and its pending deliveries')
    .addHelpText('after', examples('otpd webhook delete "$WEBHOOK_ID" --yes'))
    .action((id: string, _options: unknown, command: Command) =>
      runCommand(command, async (context) => {
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
        const response = await api.asDeveloper('DELETE', '/v1/webhooks/:id', { params: { id } })
        output.printResult(response.body, () => `${output.paint.green('✓')} Webhook ${printable(id)} deleted`)
      }),
    )
}

/** Formats the status. An enabled endpoint that keeps failing is shown as failing, because it needs attention. */
function paintStatus({ status, disabledReason, failingSince }: WebhookEndpoint, paint: Paint) {
  if (status === 'disabled')
    return paint.red(`○ disabled${disabledReason === null ? '' : ` (${printable(disabledReason)})`}`)
  return failingSince === null ? paint.green('● enabled') : paint.yellow('▲ failing')
}

function listText(endpoints: WebhookEndpoint[], { paint, formatTable }: Output) {
  if (endpoints.length === 0)
    return 'No webhooks yet. Create one:\n  otpd webhook create --app APP --url URL --events otp.verified'
  const rows = endpoints.map((endpoint) => [
    endpoint.id,
    paintStatus(endpoint, paint),
    printable(endpoint.url),
    eventsText(endpoint),
  ])
  return formatTable(['ID', 'STATUS', 'URL', 'EVENTS'], rows)
}

function endpointText(endpoint: WebhookEndpoint, { paint, formatTime }: Output) {
  const headers = Object.keys(endpoint.headers).map((name) => `${printable(name)}: ****`)
  const lines: [string, string | null][] = [
    ['Id', endpoint.id],
    ['Application', endpoint.appId],
    ['Status', paintStatus(endpoint, paint)],
    ['Events', eventsText(endpoint)],
    ['Description', endpoint.description && printable(endpoint.description)],
    ['Headers', headers.length === 0 ? null : headers.join(', ')],
    ['Failing since', endpoint.failingSince && formatTime(endpoint.failingSince)],
    ['Last delivery', endpoint.lastDeliveryAt && formatTime(endpoint.lastDeliveryAt)],
    ['Created', formatTime(endpoint.createdAt)],
    ['Updated', formatTime(endpoint.updatedAt)],
  ]
  return [paint.bold(printable(endpoint.url)), formatFacts(lines, paint)].join('\n')
}
