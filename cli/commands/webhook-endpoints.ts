import type { CliCommand } from './command.ts'
import { confirm } from '../terminal/confirm.ts'
import {
  addFieldOptions,
  nullableOption,
  readChanges,
  readFields,
  textOption,
  type FieldOptions,
  type OptionValues,
} from './field-options.ts'
import { eventKinds } from '../../src/shared/event-kinds.ts'
import { readEvents } from '../webhooks/read-events.ts'
import { parseHeaders, parseNewHeaders, readHeaderFiles } from '../webhooks/headers.ts'
import {
  findApplication,
  findWebhook,
  readApplicationName,
  readApplicationNames,
  type Names,
} from '../client/find.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { WebhookEndpoint } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { kept, optional, urlColumn } from '../terminal/table.ts'
import { namedId, printable, type Paint } from '../terminal/text.ts'
import { eventsText } from '../client/webhook-text.ts'

type CreateOptions = IdempotencyOption & { app: string; url: string; events: string }
type EndpointChanges = Route<'PATCH', '/v1/webhooks/:id'>['body']
type NewEndpoint = Route<'POST', '/v1/webhooks'>['body']

const idHelp = 'id of the endpoint, whk_…'
const urlHelp = 'https URL at a public address'
const eventsHelp = `event types, separated by commas, or * for all: ${eventKinds.join(', ')}`
const headerHelp =
  "header to send with every event, like 'Authorization: Bearer …'; 'Name: @FILE' reads the value from a file"

/** Options that are not required. */
const createOptions: FieldOptions<Pick<NewEndpoint, 'description' | 'headers'>> = {
  description: textOption('-d, --description <text>', 'description, up to 280 characters'),
  headers: {
    flags: '--header <name:value>',
    help: `${headerHelp}; up to 10 times`,
    isRepeatable: true,
    parse: parseNewHeaders,
  },
}

/** The commands `enable` and `disable` set the status. */
const changeOptions: FieldOptions<Omit<EndpointChanges, 'status'>> = {
  url: textOption('--url <url>', urlHelp),
  events: { flags: '--events <types>', help: eventsHelp, parse: readEvents },
  description: nullableOption('-d, --description <text>', 'new description, up to 280 characters'),
  headers: {
    flags: '--header <name:value>',
    help: `${headerHelp}; 'Name:' removes it`,
    isRepeatable: true,
    parse: parseHeaders,
  },
}

/** Registers the commands for endpoints. An endpoint has no name, only an id. */
export function addEndpointCommands(webhook: CliCommand) {
  addFieldOptions(webhook.command('create'), createOptions)
    .alias('new')
    .description("send an application's events to a URL, signed with its webhook secret")
    .requiredOption('--app <id|name>', 'application whose events to send')
    .requiredOption('--url <url>', urlHelp)
    .requiredOption('--events <types>', eventsHelp)
    .addOption(idempotencyKeyOption())
    .examples(
      'otpd webhook create --app web --url https://shop.example.com/hooks --events otp.verified,otp.failed',
    )
    .run(async ({ connect, io, output }, options: CreateOptions) => {
      const { app, url } = options
      const events = readEvents(options.events)
      const fields = readHeaderFiles(io, readFields(options, createOptions))
      const { api } = connect()
      const appId = await findApplication(api, app)
      const call = { body: { appId, url, events, ...fields }, headers: idempotencyHeaders(options) }
      const response = await api.asDeveloper('POST', '/v1/webhooks', call)
      output.printResult(
        response.body,
        () => [output.done('Webhook created'), endpointText(response.data, output)].join('\n'),
        [response.data.id],
      )
      output.suggestNext(`otpd webhook test ${response.data.id}`, `otpd app webhook-secret ${appId}`)
    })

  addListOptions(webhook.command('list').alias('ls').description('list your endpoints, newest first'))
    .option('--app <id|name>', 'only endpoints of this application')
    .examples('otpd webhook list', 'otpd webhook list --app web --json')
    .run(async ({ api, output }, options: ListOptions & { app?: string }) => {
      const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
      const page = await readList(options, (paging) =>
        api.asDeveloper('GET', '/v1/webhooks', { query: { ...paging, appId } }),
      )
      const needsNames = output.isForPeople && page.data.length > 0
      const names = needsNames ? await readApplicationNames(api) : new Map<string, string>()
      printList(output, page, (endpoints) => listText(endpoints, names, output))
    })

  webhook
    .command('get')
    .alias('show')
    .argument('[webhook]', idHelp)
    .description('show an endpoint')
    .examples('otpd webhook get "$WEBHOOK_ID"')
    .run(async ({ api, output }, text: string | undefined) => {
      const id = await findWebhook(api, text)
      const response = await api.asDeveloper('GET', '/v1/webhooks/:id', { params: { id } })
      const { data } = response
      const appName = output.isForPeople ? await readApplicationName(api, data.appId) : undefined
      output.printResult(response.body, () => endpointText(data, output, appName), [id])
    })

  addFieldOptions(webhook.command('update'), changeOptions)
    .argument('<webhook>', idHelp)
    .description('change the URL, event types, description or headers of an endpoint')
    .examples('otpd webhook update "$WEBHOOK_ID" --events \'*\'')
    .run(async ({ connect, io, output }, text: string, options: OptionValues) => {
      const body = readHeaderFiles(io, readChanges(options, changeOptions))
      const { api } = connect()
      const id = await findWebhook(api, text)
      const response = await api.asDeveloper('PATCH', '/v1/webhooks/:id', { params: { id }, body })
      const dropped = response.data.droppedHeaders?.map(printable).join(', ')
      if (dropped !== undefined)
        output.warn(
          `The URL has another origin, so these headers were removed: ${dropped}. Set them again with: otpd webhook update ${id} --header 'NAME: VALUE'`,
        )
      output.printResult(response.body, () =>
        [output.done('Webhook updated'), endpointText(response.data, output)].join('\n'),
      )
    })

  for (const [verb, status, description] of [
    ['enable', 'enabled', 'enable a disabled endpoint'],
    ['disable', 'disabled', 'stop sending events to an endpoint until it is enabled again'],
  ] as const) {
    webhook
      .command(verb)
      .argument('[webhook]', idHelp)
      .description(description)
      .examples(`otpd webhook ${verb} "$WEBHOOK_ID"`)
      .run(async ({ api, output }, text: string | undefined) => {
        const call = { params: { id: await findWebhook(api, text) }, body: { status } }
        const response = await api.asDeveloper('PATCH', '/v1/webhooks/:id', call)
        const url = output.paint.bold(printable(response.data.url))
        output.printResult(response.body, () => output.done(`${url} is ${response.data.status}`))
      })
  }

  webhook
    .command('delete')
    .alias('rm')
    .argument('<webhook>', idHelp)
    .description('delete an endpoint and its pending deliveries')
    .examples('otpd webhook delete "$WEBHOOK_ID" --yes')
    .run(async (context, text: string) => {
      const { api, output } = context
      const id = await confirm(context, {
        find: () => findWebhook(api, text),
        async describe(id) {
          const { data } = await api.asDeveloper('GET', '/v1/webhooks/:id', { params: { id } })
          const { host } = new URL(data.url)
          return { question: `Delete the webhook to ${printable(data.url)}?`, name: host }
        },
      })
      const response = await api.asDeveloper('DELETE', '/v1/webhooks/:id', { params: { id } })
      output.printResult(response.body, () => output.done(`Webhook ${printable(id)} deleted`))
    })
}

/** Formats the status. An enabled endpoint that keeps failing is shown as failing, because it needs attention. */
function paintStatus({ status, disabledReason, failingSince }: WebhookEndpoint, paint: Paint) {
  if (status === 'disabled')
    return paint.red(`○ disabled${disabledReason === null ? '' : ` (${printable(disabledReason)})`}`)
  return failingSince === null ? paint.green('● enabled') : paint.yellow('▲ failing')
}

function listText(endpoints: WebhookEndpoint[], names: Names, { paint, formatTable }: Output) {
  if (endpoints.length === 0)
    return 'No webhooks yet. Create one:\n  otpd webhook create --app APP --url URL --events otp.verified'
  const rows = endpoints.map((endpoint) => [
    printable(endpoint.url),
    paintStatus(endpoint, paint),
    printable(names.get(endpoint.appId) ?? endpoint.appId),
    eventsText(endpoint),
    endpoint.id,
  ])
  return formatTable([urlColumn('URL'), kept('STATUS'), optional('APP'), optional('EVENTS'), 'ID'], rows)
}

function endpointText(endpoint: WebhookEndpoint, { details, paint, formatTime }: Output, appName?: string) {
  const headers = Object.keys(endpoint.headers).map((name) => `${printable(name)}: ****`)
  return details(paint.bold(printable(endpoint.url)), [
    ['Id', endpoint.id],
    ['Application', namedId(endpoint.appId, appName)],
    ['Status', paintStatus(endpoint, paint)],
    ['Events', eventsText(endpoint)],
    ['Description', endpoint.description && printable(endpoint.description)],
    ['Headers', headers.length === 0 ? null : headers.join(', ')],
    ['Failing since', endpoint.failingSince && formatTime(endpoint.failingSince)],
    ['Last delivery', endpoint.lastDeliveryAt && formatTime(endpoint.lastDeliveryAt)],
    ['Created', formatTime(endpoint.createdAt)],
    ['Updated', formatTime(endpoint.updatedAt)],
  ])
}
