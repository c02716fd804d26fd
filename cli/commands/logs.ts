import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import type { Context } from '../context.ts'
import { usageError, type ExitCode } from '../terminal/errors.ts'
import { findApplication, findOtpRequest, readApplicationNames } from '../client/find.ts'
import { connectionText, followLog } from '../client/follow-log.ts'
import { runUntilInterrupted } from '../terminal/interrupt.ts'
import { createLogLines } from '../client/log-lines.ts'
import { findRecent, matchesSearch, type LogSearch } from '../client/recent-log.ts'
import type { LogEntry } from '../client/resources.ts'
import type { Output } from '../terminal/output.ts'
import { logTypes } from '../../src/shared/event-kinds.ts'
import { environmentOption } from './environment-option.ts'
import type { Environment } from '../../src/shared/otp-values.ts'
import { parseMoment, sinceFlags, sinceHelp } from './moment.ts'

type Options = {
  tail?: true
  follow?: true
  app?: string
  env?: Environment
  request?: string
  type?: string
  phone?: string
  since?: string
  limit?: string
}

const limitDefault = 20
const limitMax = 10_000

/** Creates the name that other programs use for --tail; the help does not show it. */
export const followAlias = () => new Option('-f, --follow').hideHelp()

/** Registers the logs command. */
export function addLogsCommand(program: CliCommand) {
  program
    .command('logs')
    .usage('[options]')
    // Hidden: the option is enough.
    .argument('[tail]')
    .description('show events of codes, oldest first')
    .option('-t, --tail', 'follow new events until Ctrl+C')
    .addOption(followAlias())
    .option('--request <request-id>', 'only events of this code, with each attempt to deliver it')
    .option('--app <id|name>', 'only events of this application')
    .addOption(environmentOption('only events of'))
    .option('--type <types>', `only these event types, separated by commas: ${logTypes.join(', ')}`)
    .option('--phone <number>', 'only events of this phone number, or of its last digits')
    .option(sinceFlags, `only events since this time: ${sinceHelp}`)
    .option(
      '--limit <number>',
      `maximum number of newest events (default ${limitDefault}; with --since ${limitMax})`,
    )
    .examples(
      'otpd logs',
      'otpd logs --type otp.failed,otp.expired --since 1h --json',
      'otpd logs --tail --app web',
    )
    .run(async (context, action: string | undefined, options: Options) => {
      if (action !== undefined && action !== 'tail')
        throw usageError(`Unknown argument '${action}'.`, 'See: otpd logs --help')
      return await showLogs(context, options, (options.tail ?? options.follow) === true || action === 'tail')
    })
}

async function showLogs(context: Context, options: Options, isTail: boolean): Promise<ExitCode | void> {
  const { io, output } = context
  const parsedOptions = readOptions(options, io.now())
  const connection = context.connect()
  const { api, server } = connection
  const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
  const requestId = options.request === undefined ? undefined : await findOtpRequest(api, options.request)
  const search: LogSearch = { ...parsedOptions, appId, requestId, environment: options.env }
  // Read first: a request has entries, such as attempts to deliver, that are no positions of the log.
  const position = isTail && requestId !== undefined ? await findRecent(api, { limit: 1 }) : undefined
  const recentLog = await findRecent(api, search)
  // Names are for people; scripts that read JSON do not wait for them.
  const needsNames = !output.json && (isTail || recentLog.entries.length > 0)
  const appNames = needsNames ? await readApplicationNames(api) : new Map<string, string>()
  const lines = createLogLines(appNames, output)
  const formatEntry = (entry: LogEntry) => lines.entry(entry, io.now())
  if (recentLog.isTruncated)
    output.warn('The search stopped after 10,000 entries; older ones were not searched.')

  if (!isTail) {
    output.printResult(recentLog.body, () =>
      recentLog.entries.length === 0
        ? emptyText(options)
        : [lines.heading(io.now()), ...recentLog.entries.map(formatEntry)].join('\n'),
    )
    return
  }
  if (!output.json) output.printResult('', () => lines.heading(io.now()))
  for (const entry of recentLog.entries) output.printResult(JSON.stringify(entry), () => formatEntry(entry))
  output.note(output.paintError.dim(`Waiting for events from ${server.url} (Ctrl+C to quit)`))
  const { newestId: after } = position ?? recentLog
  const query = { appId, environment: options.env, type: search.type, after }
  const shown = new Set(recentLog.entries.map(({ id }) => id))
  return await runUntilInterrupted(io, async (signal) => {
    for await (const event of followLog(context, connection, { query, signal })) {
      if (event.kind !== 'entry') noteConnection(output, connectionText(event))
      else if (matchesSearch(event.entry, search) && !shown.has(event.entry.id))
        output.printResult(event.json, () => formatEntry(event.entry))
    }
  })
}

/** Notes a change of the connection, set off from the entries. */
export const noteConnection = ({ note, paintError }: Output, text: string) =>
  note(paintError.yellow(`── ${text} ──`))

const emptyText = ({ app, env, request, type, phone, since }: Options) =>
  [app, env, request, type, phone, since].every((filter) => filter === undefined)
    ? 'No events yet. Send a code: otpd otp send PHONE --env-file FILE'
    : 'No matching events. See all of them: otpd logs'

function readOptions(
  { type, phone, since, limit }: Options,
  nowMs: number,
): Omit<LogSearch, 'appId' | 'environment' | 'requestId'> {
  if (limit !== undefined && !(/^[1-9]\d{0,4}$/.test(limit) && Number(limit) <= limitMax))
    throw usageError(`--limit must be a number from 1 to ${limitMax}.`)
  const phoneEnd = phone
    ?.replaceAll(/[\s().-]/g, '')
    .replace(/^00/, '+')
    .replace(/^0(?=\d{6})/, '')
  if (phoneEnd !== undefined && !/^\+?\d{2,15}$/.test(phoneEnd))
    throw usageError('--phone must be a number like +14155550100, or its last digits.')
  return {
    type: type?.replaceAll(/\s/g, ''),
    phoneEnd,
    sinceMs: since === undefined ? undefined : parseMoment(since, nowMs),
    limit: limit === undefined ? (since === undefined ? limitDefault : limitMax) : Number(limit),
  }
}
