import { Option, type Command } from 'commander'
import { connectAsApplication } from '../client/credentials.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import { findApplication } from '../client/find.ts'
import { addListOptions, listQuery, printNextPageHint, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { OtpRequest } from '../client/resources.ts'
import { formatFacts, printable, type Paint } from '../terminal/text.ts'

type Status = OtpRequest['status']
type Filters = ListOptions & { app?: string; status?: Status }

const marks = {
  pending: { text: '… pending', colour: 'cyan' },
  verified: { text: '✓ verified', colour: 'green' },
  failed: { text: '✗ failed', colour: 'red' },
  expired: { text: '○ expired', colour: 'dim' },
  canceled: { text: '○ canceled', colour: 'dim' },
} as const satisfies Record<Status, { text: string; colour: keyof Paint }>

/** Registers the commands that show sent codes. */
export function addOtpRequestCommands(otp: Command, runCommand: RunCommand) {
  addListOptions(otp.command('list').alias('ls').description('list sent codes, newest first'))
    .option('--app <id|name>', 'only codes of this application')
    .addOption(
      new Option(
        '--status <status>',
        `only codes with this status: ${Object.keys(marks).join(', ')}`,
      ).choices(Object.keys(marks)),
    )
    .addHelpText('after', examples('otpd otp list', 'otpd otp list --app web --status verified --json'))
    .action((options: Filters, command: Command) =>
      runCommand(command, async ({ connect, output }) => {
        const { api } = connect()
        const { app, status } = options
        const appId = app === undefined ? undefined : await findApplication(api, app)
        const query = { ...listQuery(options), appId, status }
        const response = await api.asDeveloper('GET', '/v1/otp', { query })
        output.printResult(response.body, () => listText(response.data, options, output))
        printNextPageHint(output, response)
      }),
    )

  otp
    .command('get')
    .alias('show')
    .argument('<request-id>', 'request id from otp send, otp_…')
    .description('show a sent code and its status; as the application if you are not logged in')
    .option('--env-file <path>', 'use the credentials of this application instead of your login')
    .addHelpText(
      'after',
      examples('otpd otp get "$REQUEST_ID"', 'otpd otp get "$REQUEST_ID" --env-file .env.otpd --json'),
    )
    .action((id: string, options: { envFile?: string }, command: Command) =>
      runCommand(command, async (context) => {
        const { output } = context
        const response = await findRequest(context, id, options)
        output.printResult(response.body, () => requestText(response.data, output))
      }),
    )
}

async function findRequest(context: Context, id: string, options: { envFile?: string }) {
  const call = { params: { id } }
  if (options.envFile === undefined) {
    const { api, tokens } = context.connect()
    const isApplication = context.io.env.OTPD_CLIENT_ID && (await tokens.current()) === null
    if (!isApplication) return await api.asDeveloper('GET', '/v1/otp/:id', call)
  }
  const { api, credentials } = connectAsApplication(context, options)
  return await api.asApplication('GET', '/v1/otp/:id', credentials, call)
}

const paintStatus = (status: Status, paint: Paint) => paint[marks[status].colour](marks[status].text)

function listText(
  requests: OtpRequest[],
  { app, status }: Filters,
  { paint, formatTable, formatTime }: Output,
) {
  if (requests.length === 0)
    return app === undefined && status === undefined
      ? 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
      : 'No matching codes. See all of them: otpd otp list'
  const rows = requests.map((request) => [
    request.id,
    printable(request.phone),
    paintStatus(request.status, paint),
    request.environment,
    `${request.attempts}/${request.maxAttempts}`,
    formatTime(request.createdAt),
  ])
  return formatTable(['ID', 'PHONE', 'STATUS', 'ENV', 'TRIES', 'SENT'], rows)
}

function requestText(request: OtpRequest, { paint, formatTime }: Output) {
  const deliveryWords = [request.channel, request.provider, request.deliveryStatus].flatMap(
    (words) => words ?? [],
  )
  const lines: [string, string | null][] = [
    ['Id', request.id],
    ['Status', paintStatus(request.status, paint)],
    ['Reason', request.failureReason && printable(request.failureReason).replaceAll('_', ' ')],
    ['Application', `${request.appId} (${request.environment})`],
    ['Country', request.country],
    ['Sent', `${formatTime(request.createdAt)} by ${deliveryWords.map(printable).join(', ')}`],
    ['Resends', request.resends === 0 ? null : String(request.resends)],
    ['Attempts', `${request.attempts} of ${request.maxAttempts}`],
    ['Expires', request.status === 'pending' ? formatTime(request.expiresAt) : null],
    ['Verified', request.verifiedAt && formatTime(request.verifiedAt)],
  ]
  return [paint.bold(printable(request.phone)), formatFacts(lines, paint)].join('\n')
}
