import { Option, type Command } from 'commander'
import { asApplication } from '../client/credentials.ts'
import type { Context } from '../context.ts'
import { examples } from '../examples.ts'
import { findApplication } from '../client/find.ts'
import { addListOptions, firstFilled, listQuery, noteMore, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { OtpRequest } from '../client/resources.ts'
import { facts, printable, type Paint } from '../terminal/text.ts'

type Status = OtpRequest['status']
type Filters = ListOptions & { app?: string; status?: Status }

const marks = {
  pending: { text: '… pending', colour: 'cyan' },
  verified: { text: '✓ verified', colour: 'green' },
  failed: { text: '✗ failed', colour: 'red' },
  expired: { text: '○ expired', colour: 'dim' },
  canceled: { text: '○ canceled', colour: 'dim' },
} as const satisfies Record<Status, { text: string; colour: keyof Paint }>

/** What became of the codes that were sent. */
export function addOtpRequestCommands(otp: Command, run: Run) {
  addListOptions(otp.command('list').alias('ls').description('list what was sent, newest first'))
    .option('--app <id|name>', 'only of this application')
    .addOption(
      new Option('--status <status>', `only ${Object.keys(marks).join(', ')}`).choices(Object.keys(marks)),
    )
    .addHelpText('after', examples('otpd otp list', 'otpd otp list --app web --status verified --json'))
    .action((options: Filters, command: Command) =>
      run(command, async ({ connect, output }) => {
        const { api } = connect()
        const { app, status } = options
        const appId = app === undefined ? undefined : await findApplication(api, app)
        const query = { ...listQuery(options), appId, status }
        const found = await firstFilled((further) =>
          api.asDeveloper('GET', '/v1/otp', { query: { ...query, ...further } }),
        )
        output.answer(found.body, () => listText(found.data, options, output))
        noteMore(output, found)
      }),
    )

  otp
    .command('get')
    .alias('show')
    .argument('<request-id>', 'what sending gave, otp_…')
    .description('show what became of a code; as its application where you are not logged in')
    .option('--env-file <path>', 'as the application with these credentials, not as yourself')
    .addHelpText(
      'after',
      examples('otpd otp get "$REQUEST_ID"', 'otpd otp get "$REQUEST_ID" --env-file .env.otpd --json'),
    )
    .action((id: string, options: { envFile?: string }, command: Command) =>
      run(command, async (context) => {
        const { output } = context
        const found = await find(context, id, options)
        output.answer(found.body, () => requestText(found.data, output))
      }),
    )
}

async function find(context: Context, id: string, options: { envFile?: string }) {
  const call = { params: { id } }
  if (options.envFile === undefined) {
    const { api, tokens } = context.connect()
    const isApplication = context.io.env.OTPD_CLIENT_ID && (await tokens.current()) === null
    if (!isApplication) return await api.asDeveloper('GET', '/v1/otp/:id', call)
  }
  const { api, credentials } = asApplication(context, options)
  return await api.asApplication('GET', '/v1/otp/:id', credentials, call)
}

const paintStatus = (status: Status, paint: Paint) => paint[marks[status].colour](marks[status].text)

function listText(requests: OtpRequest[], { app, status }: Filters, { paint, table, when }: Output) {
  if (requests.length === 0)
    return app === undefined && status === undefined
      ? 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
      : 'No such codes. See all of them: otpd otp list'
  const rows = requests.map((one) => [
    one.id,
    printable(one.phone),
    paintStatus(one.status, paint),
    one.environment,
    `${one.attempts}/${one.maxAttempts}`,
    when(one.createdAt),
  ])
  return table(['ID', 'PHONE', 'STATUS', 'ENV', 'TRIES', 'SENT'], rows)
}

function requestText(one: OtpRequest, { paint, when }: Output) {
  const by = [one.channel, one.provider, one.deliveryStatus].flatMap((word) => word ?? [])
  const lines: [string, string | null][] = [
    ['Id', one.id],
    ['Status', paintStatus(one.status, paint)],
    ['Why', one.failureReason && printable(one.failureReason).replaceAll('_', ' ')],
    ['Application', `${one.appId} (${one.environment})`],
    ['Country', one.country],
    ['Sent', `${when(one.createdAt)} by ${by.map(printable).join(', ')}`],
    ['Resent', one.resends === 0 ? null : one.resends === 1 ? 'once' : `${one.resends} times`],
    ['Tries', `${one.attempts} of ${one.maxAttempts}`],
    ['Expires', one.status === 'pending' ? when(one.expiresAt) : null],
    ['Verified', one.verifiedAt && when(one.verifiedAt)],
  ]
  return [paint.bold(printable(one.phone)), facts(lines, paint)].join('\n')
}
