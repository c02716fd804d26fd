import { Option, type Command } from 'commander'
import { exitCodes, type ExitCode } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import { addListOptions, firstFilled, listQuery, noteMore, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { WebhookDelivery, WebhookDeliveryDetail } from '../client/resources.ts'
import { eventKinds } from '../webhooks/event-kinds.ts'
import { facts, lasting, printable, type Paint } from '../terminal/text.ts'
import { faultOf, faultSentence, resultText, type Fault } from '../terminal/webhook-text.ts'

type Status = WebhookDelivery['status']
type Filters = ListOptions & { status?: Status; type?: (typeof eventKinds)[number] }

const webhookHelp = 'the id of the endpoint, whk_…'

const statuses = ['pending', 'delivered', 'failed'] as const satisfies readonly Status[]

/** What became of events on their way to an endpoint. */
export function addDeliveryCommands(webhook: Command, run: Run) {
  webhook
    .command('test')
    .argument('<webhook>', webhookHelp)
    .description('send one signed otp.verified now; exit code 8 where it is not taken')
    .addHelpText('after', examples('otpd webhook test "$WEBHOOK_ID"'))
    .action((id: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }): Promise<ExitCode> => {
        const { api } = connect()
        const params = { id }
        // The URL is for people; a script that reads JSON is not made to wait for it.
        const endpoint = output.json ? null : await api.asDeveloper('GET', '/v1/webhooks/:id', { params })
        const { body, data } = await api.asDeveloper('POST', '/v1/webhooks/:id/test', { params })
        output.answer(body, () => testText(endpoint?.data.url ?? id, data, output.paint))
        return data.delivered ? exitCodes.done : exitCodes.negative
      }),
    )

  addListOptions(
    webhook
      .command('deliveries')
      .argument('<webhook>', webhookHelp)
      .argument('[delivery]', 'one of them, with every attempt')
      .description('what became of the events of the last 30 days, newest first'),
  )
    .addOption(new Option('--status <status>', `only ${statuses.join(', ')}`).choices(statuses))
    .addOption(new Option('--type <type>', 'only of this event, like otp.verified').choices(eventKinds))
    .addHelpText(
      'after',
      examples(
        'otpd webhook deliveries "$WEBHOOK_ID"',
        'otpd webhook deliveries "$WEBHOOK_ID" --status failed --json',
        'otpd webhook deliveries "$WEBHOOK_ID" "$DELIVERY_ID"',
      ),
    )
    .action((id: string, deliveryId: string | undefined, options: Filters, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { api } = connect()
        if (deliveryId !== undefined) {
          const call = { params: { id, deliveryId } }
          const one = await api.asDeveloper('GET', '/v1/webhooks/:id/deliveries/:deliveryId', call)
          return output.answer(one.body, () => deliveryText(one.data, output))
        }
        const { status, type } = options
        const query = { ...listQuery(options), status, type }
        const found = await firstFilled((further) =>
          api.asDeveloper('GET', '/v1/webhooks/:id/deliveries', {
            params: { id },
            query: { ...query, ...further },
          }),
        )
        output.answer(found.body, () => listText(found.data, options, output))
        noteMore(output, found)
      }),
    )

  webhook
    .command('redeliver')
    .argument('<webhook>', webhookHelp)
    .argument('<delivery>', 'what to send again')
    .description('send an event once more, now, with the same webhook-id')
    .addHelpText('after', examples('otpd webhook redeliver "$WEBHOOK_ID" "$DELIVERY_ID"'))
    .action((id: string, deliveryId: string, _options: unknown, command: Command) =>
      run(command, async ({ connect, output }) => {
        const call = { params: { id, deliveryId } }
        const path = '/v1/webhooks/:id/deliveries/:deliveryId/redeliver'
        const queued = await connect().api.asDeveloper('POST', path, call)
        output.answer(queued.body, () => `${output.paint.green('✓')} ${queued.data.type} is on its way again`)
        output.next(`otpd webhook deliveries ${id} ${deliveryId}`)
      }),
    )
}

type TestResult = { delivered: boolean; statusCode: number; error?: Fault }

function testText(url: string, { delivered, statusCode, error }: TestResult, paint: Paint) {
  const status = statusCode === 0 ? 'no answer' : String(statusCode)
  const lines = [
    `${paint.cyan('→')} POST ${printable(url)}  ${paint.bold('otp.verified')}`,
    delivered ? `${paint.green('←')} ${status}  delivered` : `${paint.red('←')} ${status}  not delivered`,
  ]
  if (!delivered) lines.push(paint.dim(`  ${faultSentence(error ?? faultOf(statusCode))}`))
  return lines.join('\n')
}

const marks = {
  pending: { text: '… pending', colour: 'cyan' },
  delivered: { text: '✓ delivered', colour: 'green' },
  failed: { text: '✗ failed', colour: 'red' },
} as const satisfies Record<Status, { text: string; colour: keyof Paint }>

const paintStatus = (status: Status, paint: Paint) => paint[marks[status].colour](marks[status].text)

function listText(deliveries: WebhookDelivery[], { status, type }: Filters, { paint, table, when }: Output) {
  if (deliveries.length === 0)
    return status === undefined && type === undefined
      ? 'No deliveries yet. Send a code, or: otpd webhook test WEBHOOK'
      : 'No such deliveries. Leave out --status and --type to see all of them.'
  const rows = deliveries.map((one) => [
    one.id,
    printable(one.type),
    paintStatus(one.status, paint),
    String(one.attempts),
    resultText(one.lastStatusCode, one.lastError),
    when(one.createdAt),
  ])
  return table(['ID', 'EVENT', 'STATUS', 'TRIES', 'LAST', 'CREATED'], rows)
}

function deliveryText(one: WebhookDeliveryDetail, { paint, when, table }: Output) {
  const lines: [string, string | null][] = [
    ['Id', one.id],
    ['Event', one.eventId],
    ['Status', paintStatus(one.status, paint)],
    ['Created', when(one.createdAt)],
    ['Delivered', one.deliveredAt && when(one.deliveredAt)],
    ['Next attempt', one.nextAttemptAt && when(one.nextAttemptAt)],
  ]
  const title = [paint.bold(printable(one.type)), facts(lines, paint)].join('\n')
  if (one.attempts.length === 0) return title
  const rows = one.attempts.map(({ at, statusCode, error, durationMs, body }) => [
    when(at),
    resultText(statusCode, error),
    lasting(durationMs),
    printable((body ?? '').replaceAll(/\s+/g, ' ').trim()),
  ])
  return [title, '', table(['ATTEMPT', 'RESULT', 'TOOK', 'ANSWER'], rows)].join('\n')
}
