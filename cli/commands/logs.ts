import { Argument, type Command } from 'commander'
import { durationMs, type Context, type RunCommand } from '../context.ts'
import { usageError, type ExitCode } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import { findApplication, listApplications } from '../client/find.ts'
import { followLog } from '../client/follow-log.ts'
import { runUntilInterrupted } from '../terminal/interrupt.ts'
import { logLine } from '../client/log-lines.ts'
import { findRecent, matchesSearch, type LogSearch } from '../client/recent-log.ts'
import type { LogEntry } from '../client/resources.ts'
import { formatDuration } from '../terminal/text.ts'
import { dayMs } from '../../src/shared/durations.ts'

type Options = { tail?: true; app?: string; type?: string; phone?: string; since?: string; limit?: string }

const limitDefault = 20
const limitMax = 10_000

/** Event id before every real one: following the log after it starts at the beginning. */
const logStart = `evt_${'0'.repeat(26)}`

/** Registers the logs command. */
export function addLogsCommand(program: Command, runCommand: RunCommand) {
  program
    .command('logs')
    .addArgument(new Argument('[tail]', 'tail: same as --tail').choices(['tail']))
    .description('show events of codes, oldest first')
    .option('-t, --tail', 'follow new events until Ctrl-C')
    .option('--app <id|name>', 'only events of this application')
    .option('--type <types>', 'only these event types, like otp.verified,otp.failed')
    .option('--phone <number>', 'only events of this phone number, or of its last digits')
    .option('--since <time>', 'only events since this time: 10m, 2h, 3d, or 2026-11-20T08:00:00Z')
    .option(
      '--limit <number>',
      `maximum number of newest events (default ${limitDefault}; with --since ${limitMax})`,
    )
    .addHelpText(
      'after',
      examples(
        'otpd logs',
        'otpd logs --type otp.failed,otp.expired --since 1h --json',
        'otpd logs --tail --app web',
      ),
    )
    .action((action: string | undefined, options: Options, command: Command) =>
      runCommand(command, (context) =>
        showLogs(context, options, options.tail === true || action === 'tail'),
      ),
    )
}

async function showLogs(context: Context, options: Options, isTail: boolean): Promise<ExitCode | void> {
  const { io, output } = context
  const parsedOptions = readOptions(options, io.now())
  const connection = context.connect()
  const { api, server } = connection
  const appId = options.app === undefined ? undefined : await findApplication(api, options.app)
  const search: LogSearch = { ...parsedOptions, appId }
  const recentLog = await findRecent(api, search)
  // Names are for people; scripts that read JSON do not wait for them.
  const needsNames = !output.json && (isTail || recentLog.entries.length > 0)
  const appNames = new Map(needsNames ? (await listApplications(api)).map(({ id, name }) => [id, name]) : [])
  const formatEntry = (entry: LogEntry) => logLine(entry, appNames, io.now(), output)
  if (recentLog.isTruncated)
    output.warn('The search stopped after 10,000 entries; older ones were not searched.')

  if (!isTail) {
    output.printResult(
      recentLog.body,
      () => recentLog.entries.map(formatEntry).join('\n') || emptyText(options),
    )
    return
  }
  for (const entry of recentLog.entries) output.printResult(JSON.stringify(entry), () => formatEntry(entry))
  output.note(output.paintError.dim(`Waiting for events from ${server.url} (Ctrl+C to quit)`))
  const query = { appId, type: search.type, after: recentLog.newestId ?? logStart }
  return await runUntilInterrupted(io, async (signal) => {
    for await (const event of followLog(context, connection, { query, signal })) {
      if (event.kind === 'disconnected') output.note(connectionNotice(context, `${event.reason}, retrying`))
      else if (event.kind === 'reconnected')
        output.note(
          connectionNotice(context, `reconnected after ${formatDuration(event.afterMs)}, no events missed`),
        )
      else if (matchesSearch(event.entry, search))
        output.printResult(event.json, () => formatEntry(event.entry))
    }
  })
}

/** Formats a notice about the connection, set off from the entries. */
export const connectionNotice = ({ output }: Context, text: string) =>
  output.paintError.yellow(`── ${text} ──`)

const emptyText = ({ app, type, phone, since }: Options) =>
  [app, type, phone, since].every((filter) => filter === undefined)
    ? 'No events yet. Send a code: otpd otp send PHONE --env-file FILE'
    : 'No matching events. See all of them: otpd logs'

function readOptions({ type, phone, since, limit }: Options, nowMs: number): Omit<LogSearch, 'appId'> {
  if (limit !== undefined && !(/^[1-9]\d{0,4}$/.test(limit) && Number(limit) <= limitMax))
    throw usageError(`--limit must be a number from 1 to ${limitMax}.`)
  const phoneEnd = phone?.replaceAll(/[\s().-]/g, '').replace(/^00/, '+')
  if (phoneEnd !== undefined && !/^\+?\d{2,15}$/.test(phoneEnd))
    throw usageError('--phone must be a number like +14155550100, or its last digits.')
  return {
    type: type?.replaceAll(/\s/g, ''),
    phoneEnd,
    sinceMs: since === undefined ? undefined : parseMoment(since, nowMs),
    limit: limit === undefined ? (since === undefined ? limitDefault : limitMax) : Number(limit),
  }
}

/** Parses --since to milliseconds since the epoch: `10m` is ten minutes ago; anything else is a date. */
function parseMoment(since: string, nowMs: number): number {
  const [, days] = /^(\d{1,4})d$/.exec(since) ?? []
  if (days !== undefined) return nowMs - Number(days) * dayMs
  if (/^[\d.]+(ms|s|m|h)$/.test(since)) return nowMs - durationMs(since, '--since')
  const timestampMs = /^\d{4}-\d\d-\d\d/.test(since) ? Date.parse(since) : Number.NaN
  if (Number.isNaN(timestampMs))
    throw usageError('--since must be a time like 10m, 2h, 3d or 2026-11-20T08:00:00Z.')
  return timestampMs
}
