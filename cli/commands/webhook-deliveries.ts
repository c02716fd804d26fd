import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import { CliError, exitCodes, type ExitCode } from '../terminal/errors.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { Api } from '../client/api.ts'
import type { Output } from '../terminal/output.ts'
import type { WebhookDelivery, WebhookDeliveryDetail } from '../client/resources.ts'
import { eventKinds } from '../../src/shared/event-kinds.ts'
import { keysOf } from '../../src/shared/fields.ts'
import { findDelivery, findWebhook } from '../client/find.ts'
import { kept, optional } from '../terminal/table.ts'
import { parseMoment, sinceHelp } from './moment.ts'
import { formatDuration, printable, type Paint } from '../terminal/text.ts'
import { faultForStatus, faultText, requestLines, resultText, type Fault } from '../client/webhook-text.ts'

type Status = WebhookDelivery['status']
type RecoverOptions = { since?: string; until?: string }
type Filters = ListOptions & { status?: Status; type?: (typeof eventKinds)[number] }

const webhookHelp = 'id, URL or application of the endpoint; may be left out if you have one only'

/** Registers the commands for deliveries to an endpoint. */
export function addDeliveryCommands(webhook: CliCommand) {
  webhook
    .command('test')
    .argument('[webhook]', webhookHelp)
    .description('send a signed otp.verified test event; exit code 8 if it is not delivered')
    .examples('otpd webhook test "$WEBHOOK_ID"')
    .run(async ({ api, output }, text: string | undefined): Promise<ExitCode> => {
      const id = await findWebhook(api, text)
      const params = { id }
      // The URL is for people; scripts that read JSON do not wait for it.
      const endpoint = output.json ? null : await api.asDeveloper('GET', '/v1/webhooks/:id', { params })
      const { body, data } = await api.asDeveloper('POST', '/v1/webhooks/:id/test', { params })
      output.printResult(body, () => testText(endpoint?.data.url ?? id, data, output.paint))
      return data.delivered ? exitCodes.done : exitCodes.negative
    })

  addListOptions(
    webhook
      .command('deliveries')
      .argument('[webhook]', webhookHelp)
      .argument('[delivery]', 'id of one delivery, to show its attempts and what was sent')
      .description('list the deliveries of the last 30 days, newest first'),
  )
    .addOption(
      new Option('--status <status>', `only deliveries with this status: ${statuses.join(', ')}`).choices(
        statuses,
      ),
    )
    .addOption(
      new Option('--type <type>', `only deliveries of this event type: ${eventKinds.join(', ')}`).choices(
        eventKinds,
      ),
    )
    .examples(
      'otpd webhook deliveries "$WEBHOOK_ID"',
      'otpd webhook deliveries "$WEBHOOK_ID" --status failed --json',
      'otpd webhook deliveries "$WEBHOOK_ID" "$DELIVERY_ID"',
    )
    .run(async ({ api, output }, first: string | undefined, second: string | undefined, options: Filters) => {
      const [text, deliveryText] = splitDelivery(first, second)
      const id = await findWebhook(api, text)
      if (deliveryText !== undefined) {
        const deliveryId = await findDelivery(api, id, deliveryText)
        const call = { params: { id, deliveryId } }
        const detail = await api.asDeveloper('GET', '/v1/webhooks/:id/deliveries/:deliveryId', call)
        return output.printResult(detail.body, () => detailText(detail.data, output), [deliveryId])
      }
      const { status, type } = options
      const page = await readList(options, (paging) =>
        api.asDeveloper('GET', '/v1/webhooks/:id/deliveries', {
          params: { id },
          query: { ...paging, status, type },
        }),
      )
      printList(output, page, (deliveries) => listText(deliveries, options, output))
    })

  webhook
    .command('redeliver')
    .argument('[webhook]', webhookHelp)
    .argument('[delivery]', 'id of the delivery, dlv_…; without it, the newest one that failed')
    .description('send an event again now, with the same webhook-id')
    .examples('otpd webhook redeliver "$WEBHOOK_ID" "$DELIVERY_ID"')
    .run(async ({ api, output }, first: string | undefined, second: string | undefined) => {
      const [text, deliveryText] = splitDelivery(first, second)
      const id = await findWebhook(api, text)
      const deliveryId =
        deliveryText === undefined
          ? await findNewestFailed(api, id)
          : await findDelivery(api, id, deliveryText)
      const call = { params: { id, deliveryId } }
      const path = '/v1/webhooks/:id/deliveries/:deliveryId/redeliver'
      const response = await api.asDeveloper('POST', path, call)
      output.printResult(response.body, () =>
        output.done(`${response.data.type} is queued for delivery again`),
      )
      output.suggestNext(`otpd webhook deliveries ${id} ${deliveryId}`)
    })

  webhook
    .command('recover')
    .argument('[webhook]', webhookHelp)
    .description('send every event again that an endpoint missed, with the same webhook-ids')
    .option('--since <time>', `events since this time: ${sinceHelp} (default 30d)`)
    .option('--until <time>', `events until this time (default now): ${sinceHelp}`)
    .examples('otpd webhook recover "$WEBHOOK_ID" --since 2h')
    .run(async ({ connect, io, output }, text: string | undefined, options: RecoverOptions) => {
      const toTime = (moment: string, flag: string) =>
        new Date(parseMoment(moment, io.now(), flag)).toISOString()
      const { since = '30d', until } = options
      const body = {
        since: toTime(since, '--since'),
        ...(until !== undefined && { until: toTime(until, '--until') }),
      }
      const { api } = connect()
      const id = await findWebhook(api, text)
      const response = await api.asDeveloper('POST', '/v1/webhooks/:id/recover', { params: { id }, body })
      const { recovered } = response.data
      output.printResult(response.body, () =>
        recovered === 0
          ? 'No event was missed in that time.'
          : output.done(`Events queued for delivery again: ${recovered}`),
      )
      if (recovered > 0) output.suggestNext(`otpd webhook deliveries ${id}`)
    })
}

/** A delivery may be named without its endpoint, if there is one only. */
const splitDelivery = (first?: string, second?: string) =>
  second === undefined && first?.startsWith('dlv_') ? [undefined, first] : [first, second]

/** @throws CliError NOT_FOUND */
async function findNewestFailed(api: Api, id: string): Promise<string> {
  const call = { params: { id }, query: { status: 'failed' as const, limit: '1' } }
  const [newest] = (await api.asDeveloper('GET', '/v1/webhooks/:id/deliveries', call)).data
  if (newest) return newest.id
  throw new CliError(exitCodes.notFound, 'NOT_FOUND', 'No delivery of this endpoint has failed.', {
    hints: [`Name another one: otpd webhook deliveries ${id}`],
  })
}

type TestResult = { delivered: boolean; statusCode: number; error?: Fault }

function testText(url: string, { delivered, statusCode, error }: TestResult, paint: Paint) {
  const status = statusCode === 0 ? 'no response' : String(statusCode)
  const lines = [
    `${paint.cyan('→')} POST ${printable(url)}  ${paint.bold('otp.verified')}`,
    delivered ? `${paint.green('←')} ${status}  delivered` : `${paint.red('←')} ${status}  not delivered`,
  ]
  if (!delivered) lines.push(paint.dim(`  ${faultText(error ?? faultForStatus(statusCode))}`))
  return lines.join('\n')
}

const marks = {
  pending: { text: '… pending', colour: 'cyan' },
  delivered: { text: '✓ delivered', colour: 'green' },
  failed: { text: '✗ failed', colour: 'red' },
  skipped: { text: '○ skipped', colour: 'yellow' },
} as const satisfies Record<Status, { text: string; colour: keyof Paint }>

const statuses = keysOf(marks)

const paintStatus = (status: Status, paint: Paint) => paint[marks[status].colour](marks[status].text)

function listText(
  deliveries: WebhookDelivery[],
  { status, type }: Filters,
  { paint, formatTable, columnTime, timeHeading }: Output,
) {
  if (deliveries.length === 0)
    return status === undefined && type === undefined
      ? 'No deliveries yet. Send a code, or: otpd webhook test WEBHOOK'
      : 'No matching deliveries. To see all of them, leave out --status and --type.'
  const rows = deliveries.map((delivery) => [
    printable(delivery.type),
    paintStatus(delivery.status, paint),
    resultText(delivery.lastStatusCode, delivery.lastError),
    String(delivery.attempts),
    columnTime(delivery.createdAt),
    delivery.id,
  ])
  return formatTable(
    [
      kept('EVENT'),
      kept('STATUS'),
      kept('RESULT'),
      optional('TRIES'),
      optional(timeHeading('CREATED')),
      'ID',
    ],
    rows,
  )
}

function detailText(delivery: WebhookDeliveryDetail, output: Output) {
  const { paint, formatTime, formatTable } = output
  const title = output.details(paint.bold(printable(delivery.type)), [
    ['Id', delivery.id],
    ['Event', delivery.eventId],
    ['Status', paintStatus(delivery.status, paint)],
    ['Created', formatTime(delivery.createdAt)],
    ['Delivered', delivery.deliveredAt && formatTime(delivery.deliveredAt)],
    ['Next attempt', delivery.nextAttemptAt && formatTime(delivery.nextAttemptAt)],
  ])
  if (delivery.attempts.length === 0) return title
  const { request } = delivery
  const sent =
    request === null ? [] : ['', paint.bold('REQUEST'), ...requestLines(request, String).map(printable)]
  const rows = delivery.attempts.map(({ at, statusCode, error, durationMs, body }) => [
    output.columnTime(at),
    resultText(statusCode, error),
    formatDuration(durationMs),
    printable((body ?? '').replaceAll(/\s+/g, ' ').trim()),
  ])
  return [
    title,
    '',
    formatTable([output.timeHeading('ATTEMPT'), 'RESULT', 'DURATION', 'RESPONSE'], rows),
    ...sent,
  ].join('\n')
}
