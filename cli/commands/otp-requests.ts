import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import type { Api } from '../client/api.ts'
import { connectAsApplication, type EnvFileOption } from '../client/credentials.ts'
import { lastDigitsNote } from '../client/last-digits.ts'
import {
  findApplication,
  findOtpRequest,
  readApplicationName,
  readApplicationNames,
  type Names,
} from '../client/find.ts'
import { addListOptions, printList, readSince, type ListOptions } from '../client/lists.ts'
import { metadataText } from '../client/metadata-text.ts'
import { channelName, reasonWords } from '../client/log-lines.ts'
import { deliveryText, paintOtpStatus, timelineText } from '../client/otp-text.ts'
import type { LogEntry, OtpRequest } from '../client/resources.ts'
import type { Context } from '../context.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional } from '../terminal/table.ts'
import { namedId, printable } from '../terminal/text.ts'
import { countryFlags, countryHelp } from './country-option.ts'
import { environmentOption } from './environment-option.ts'
import { parseMoment, sinceFlags, sinceHelp } from './moment.ts'
import { otpStatuses, type Environment, type OtpStatus } from '../../src/shared/otp-values.ts'

type Filters = ListOptions & {
  app?: string
  env?: Environment
  phone?: string
  country?: string
  since?: string
  status?: OtpStatus
}

/** Registers the commands that show sent codes. */
export function addOtpRequestCommands(otp: CliCommand) {
  addListOptions(otp.command('list').alias('ls').description('list sent codes, newest first'))
    .option(
      '--phone <number>',
      'only codes for this number or its last digits, and what happened to the newest',
    )
    .option(countryFlags, countryHelp)
    .addOption(
      new Option('--status <status>', `only codes with this status: ${otpStatuses.join(', ')}`).choices(
        otpStatuses,
      ),
    )
    .option(sinceFlags, `only codes sent since this time: ${sinceHelp}`)
    .option('--app <id|name>', 'only codes of this application')
    .addOption(environmentOption('only codes of'))
    .examples(
      'otpd otp list',
      'otpd otp list --phone +14155550100',
      'otpd otp list --app web --status verified --since 2h --json',
    )
    .run(async ({ api, io, output }, options: Filters) => {
      const { app, env: environment, phone, country, since, status } = options
      const sinceMs = since === undefined ? undefined : parseMoment(since, io.now())
      const appId = app === undefined ? undefined : await findApplication(api, app)
      const filters = { appId, environment, phone, country, status }
      const page = await readSince(options, sinceMs, (paging) =>
        api.asDeveloper('GET', '/v1/otp', { query: { ...paging, ...filters } }),
      )
      const needsNames = output.isForPeople && page.data.length > 0
      const names = needsNames ? await readApplicationNames(api) : new Map<string, string>()
      const [newest] = page.data
      const events = needsNames && phone !== undefined && newest ? await fetchEvents(api, newest.id) : null
      const text = (requests: OtpRequest[]) => {
        const table = listText(requests, names, options, output)
        return newest && events ? [table, '', newestText(newest, events, output)].join('\n') : table
      }
      printList(output, page, text, lastDigitsNote(options, 'newest 500 codes'))
    })

  otp
    .command('get')
    .alias('show')
    .argument('<request-id>', 'request id from otp send, otp_…')
    .description(
      'show a code and everything that happened to it; as the application if you are not logged in',
    )
    .option('--env-file <path>', 'use the credentials of this application instead of your login')
    .examples('otpd otp get "$REQUEST_ID"', 'otpd otp get "$REQUEST_ID" --env-file .env.otpd --json')
    .run(async (context, id: string, options: EnvFileOption) => {
      const { output } = context
      const { response, loadEvents, loadName } = await readRequest(context, id, options)
      const [events, appName] = output.isForPeople ? await Promise.all([loadEvents(), loadName()]) : [[]]
      output.printResult(
        response.body,
        () => [requestText(response.data, output, appName), '', timelineText(events, output)].join('\n'),
        [response.data.id],
      )
    })
}

/** Reads a request as the developer or as the application, and makes a function that reads its events as the same. */
async function readRequest(context: Context, id: string, options: EnvFileOption) {
  if (options.envFile === undefined) {
    const { api, tokens } = context.connect()
    const isApplication = context.io.env.OTPD_CLIENT_ID && (await tokens.current()) === null
    if (!isApplication) {
      const call = { params: { id: await findOtpRequest(api, id) } }
      const response = await api.asDeveloper('GET', '/v1/otp/:id', call)
      const { id: requestId, appId } = response.data
      return {
        response,
        loadEvents: () => fetchEvents(api, requestId),
        loadName: () => readApplicationName(api, appId),
      }
    }
  }
  const { api, credentials } = connectAsApplication(context, options)
  const call = { params: { id } }
  return {
    response: await api.asApplication('GET', '/v1/otp/:id', credentials, call),
    loadEvents: async () =>
      (await api.asApplication('GET', '/v1/otp/:id/events', credentials, { ...call, query: wholePage })).data,
    // An application cannot read its own name.
    loadName: async () => undefined,
  }
}

/** A request has fewer events than fit on a page: five attempts, four messages and their receipts. */
const wholePage = { limit: '200' }

const fetchEvents = async (api: Api, id: string) =>
  (await api.asDeveloper('GET', '/v1/otp/:id/events', { params: { id }, query: wholePage })).data

const newestText = ({ id }: OtpRequest, events: LogEntry[], output: Output) =>
  `${output.paint.bold(`What happened to the newest, ${id}`)}\n${timelineText(events, output)}`

function listText(
  requests: OtpRequest[],
  names: Names,
  { limit: _limit, cursor: _cursor, all: _all, ...filters }: Filters,
  { paint, formatTable, columnTime, timeHeading }: Output,
) {
  if (requests.length === 0)
    return Object.values(filters).every((filter) => filter === undefined)
      ? 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
      : `No matching codes. See ${filters.phone === undefined ? 'all of them: otpd otp list' : 'refused sends: otpd logs --type otp.refused'}`
  const rows = requests.map((request) => [
    printable(request.phone),
    paintOtpStatus(request.status, paint),
    deliveryText(request),
    columnTime(request.createdAt),
    printable(names.get(request.appId) ?? request.appId),
    request.environment,
    `${request.attempts}/${request.maxAttempts}`,
    request.id,
  ])
  return formatTable(
    [
      kept('PHONE'),
      kept('STATUS'),
      'DELIVERY',
      kept(timeHeading('SENT')),
      optional('APP'),
      optional('ENV'),
      optional('TRIES'),
      'ID',
    ],
    rows,
  )
}

function requestText(request: OtpRequest, { details, paint, formatTime }: Output, appName?: string) {
  const { provider } = request
  const way = [channelName(request.channel), ...(provider === null ? [] : [`via ${printable(provider)}`])]
  const delivery = request.deliveryStatus === null ? '' : `, ${printable(request.deliveryStatus)}`
  const isProof = request.channel === 'silent'
  return details(paint.bold(printable(request.phone)), [
    ['Id', request.id],
    ['Status', paintOtpStatus(request.status, paint)],
    ['Reason', request.failureReason && reasonWords(printable(request.failureReason))],
    ['Application', `${namedId(request.appId, appName)}, ${request.environment}`],
    ['Country', request.country],
    isProof
      ? ['Proof', 'taken instead of a code']
      : [
          'Sent',
          `${formatTime(request.createdAt)}, ${provider === 'inbox' ? 'into the inbox' : `by ${way.join(' ')}${delivery}`}`,
        ],
    ['Template', request.template ? printable(request.template) : null],
    ['Resends', request.resends === 0 ? null : String(request.resends)],
    ['Attempts', isProof ? null : `${request.attempts} of ${request.maxAttempts}`],
    ['Expires', request.status === 'pending' ? formatTime(request.expiresAt) : null],
    ['Verified', request.verifiedAt && formatTime(request.verifiedAt)],
    ['Metadata', request.metadata && metadataText(request.metadata)],
  ])
}
