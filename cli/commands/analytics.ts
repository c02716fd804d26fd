import { Argument, Option } from 'commander'
import type { CliCommand } from './command.ts'
import type { Api } from '../client/api.ts'
import type { Context } from '../context.ts'
import { CliError, usageError, type ExitCode, isRetryable } from '../terminal/errors.ts'
import { whenAborted, runUntilInterrupted } from '../terminal/interrupt.ts'
import type { Output } from '../terminal/output.ts'
import { findApplication } from '../client/find.ts'
import type { DayCounts, Summary } from '../client/resources.ts'
import { sparkline } from '../terminal/sparkline.ts'
import { formatFacts, formatNumber } from '../terminal/text.ts'
import { breakdownCsv, breakdownText, costsCsv, costsText, toCsv } from './analytics-tables.ts'
import { environmentOption } from './environment-option.ts'
import { requestChannels, type Channel, type Environment } from '../../src/shared/otp-values.ts'

type View = 'summary' | 'timeseries' | 'costs'
type Range = (typeof ranges)[number]
type Key = (typeof keys)[number]
type Options = { range?: Range; app?: string; by?: Key; env?: Environment; watch?: true; csv?: true } & Filter
/** One country, channel or provider that a breakdown is restricted to. */
type Filter = { country?: string; channel?: Channel; provider?: string }

const ranges = ['7d', '30d', '90d'] as const
const keys = ['application', 'country', 'channel', 'provider'] as const
const rangeDefault = '30d'
const watchIntervalMs = 5000
const countKeys = ['sent', 'verified', 'failed'] as const

/** Registers the analytics command: a chart, a summary or a table of days, once or repeatedly. */
export function addAnalyticsCommand(program: CliCommand) {
  program
    .command('analytics')
    .addArgument(
      new Argument(
        '[view]',
        'summary (all time), timeseries (day by day) or costs (by country and provider); default: a chart',
      ).choices(['summary', 'timeseries', 'costs']),
    )
    .description('count codes sent, verified and failed, and what they cost')
    .addOption(new Option('--range <days>', `${ranges.join(', ')} (default ${rangeDefault})`).choices(ranges))
    .option('--app <id|name>', 'only codes of this application')
    .addOption(new Option('--by <key>', `one line for each ${keys.join(', ')}`).choices(keys))
    .option('--country <iso>', 'with --by: only this country', (code) => code.toUpperCase())
    .addOption(
      new Option('--channel <name>', `with --by: only ${requestChannels.join(', ')}`).choices(
        requestChannels,
      ),
    )
    .option('--provider <name>', 'with --by: only this provider')
    .addOption(environmentOption('only codes of'))
    .option('--csv', 'print CSV with a header line; without a view, one line per day')
    .option('-w, --watch', 'redraw every 5 seconds, until Ctrl+C')
    .examples(
      'otpd analytics',
      'otpd analytics --by country --range 7d',
      'otpd analytics --by provider --country US',
      'otpd analytics costs --csv',
      'otpd analytics --app web',
      'otpd analytics summary --json',
      'otpd analytics timeseries --range 30d --csv',
    )
    .run((context, view: View | undefined, options: Options) =>
      options.watch === true ? printRepeatedly(context, view, options) : printOnce(context, view, options),
    )
}

async function printOnce({ connect, output }: Context, view: View | undefined, options: Options) {
  const isCsv = options.csv === true
  if (isCsv && output.json) throw usageError('--csv and --json cannot be combined.')
  refuseUnused(view, options)
  const { api } = connect()
  // A chart is for people only.
  const shown = view ?? (isCsv || output.json ? 'timeseries' : undefined)
  const { body, text, csv } = await fetchReport(api, shown, options, output)
  output.printResult(body, isCsv ? csv : text)
}

async function printRepeatedly(
  context: Context,
  view: View | undefined,
  options: Options,
): Promise<ExitCode> {
  const { io, connect, output } = context
  if (output.json || options.csv === true || !io.stdoutIsTerminal)
    throw usageError(
      '--watch needs a terminal, and cannot be combined with --json or --csv.',
      'Leave out --watch, or run the command repeatedly.',
    )
  refuseUnused(view, options)
  const { api } = connect()
  // Looked for once: an id needs no further call.
  const app = options.app && (await findApplication(api, options.app))
  const draw = async () => (await fetchReport(api, view, { ...options, ...(app && { app }) }, output)).text()
  return await runUntilInterrupted(io, async (signal) => {
    const interruption = whenAborted(signal)
    output.note(output.paintError.dim('Redrawn every 5 seconds (Ctrl+C to quit)'))
    let linesAbove = 0
    let lastFrame: string | undefined
    while (!signal.aborted) {
      let lostNotice = ''
      try {
        const frame = await Promise.race([draw(), interruption])
        if (frame === undefined) return
        lastFrame = frame
      } catch (error) {
        // A server that responded before may come back; keep showing the last frame until then.
        if (lastFrame === undefined || !(error instanceof CliError && isRetryable(error))) throw error
        lostNotice = `\n${output.paint.yellow('── the connection was lost, retrying ──')}`
      }
      const text = `${lastFrame}${lostNotice}`
      // Moves the cursor up to the start of the last frame and erases it.
      const eraseSequence = linesAbove === 0 ? '' : `\u001b[${linesAbove}A\u001b[0J`
      io.writeOut(`${eraseSequence}${text}\n`)
      linesAbove = text.split('\n').length
      await Promise.race([io.sleep(watchIntervalMs), interruption])
    }
  })
}

/** Refuses options that the view would ignore. */
function refuseUnused(view: View | undefined, { range, app, by, ...options }: Options) {
  const filter = (['country', 'channel', 'provider'] as const).find((name) => options[name] !== undefined)
  if (filter !== undefined && by === undefined)
    throw usageError(`--${filter} applies to --by only.`, `Use: otpd analytics --by KEY --${filter} …`)
  if (view === 'costs' && app !== undefined)
    throw usageError('--app does not apply to costs.', 'Use: otpd analytics --by application')
  if (by !== undefined && view !== undefined) throw usageError(`--by does not apply to ${view}.`)
  if (by !== undefined && app !== undefined)
    throw usageError('--by and --app cannot be combined.', 'Use --by application.')
  if (view === 'summary' && range !== undefined)
    throw usageError('--range does not apply to the summary, which covers all time.')
  if (view === 'summary' && app !== undefined)
    throw usageError('--app does not apply to the summary.', 'Use: otpd analytics timeseries --app APP')
}

/** A view: the response body for --json, a text for people, and CSV for spreadsheets. */
type Report = { body: string; text(): string; csv(): string }

/** Fetches a view; a chart if none is named. */
async function fetchReport(
  api: Api,
  view: View | undefined,
  { range = rangeDefault, app, by, env: environment, country, channel, provider }: Options,
  output: Output,
): Promise<Report> {
  const appId = app === undefined ? undefined : await findApplication(api, app)
  const fetchSummary = () => api.asDeveloper('GET', '/v1/analytics/summary', { query: { environment } })
  if (by !== undefined) {
    const query = { by, range, environment, country, channel, provider }
    const { body, data } = await api.asDeveloper('GET', '/v1/analytics/breakdown', { query })
    return { body, text: () => breakdownText(by, data, output), csv: () => breakdownCsv(data) }
  }
  if (view === 'costs') {
    const query = { range, environment }
    const { body, data } = await api.asDeveloper('GET', '/v1/analytics/costs', { query })
    return { body, text: () => costsText(data, output), csv: () => costsCsv(data) }
  }
  if (view === 'summary') {
    const { body, data } = await fetchSummary()
    return { body, text: () => summaryText(data, output), csv: () => toCsv([data]) }
  }
  const query = { range, appId, environment }
  const fetchDays = () => api.asDeveloper('GET', '/v1/analytics/timeseries', { query })
  if (view === 'timeseries') {
    const { body, data } = await fetchDays()
    return { body, text: () => daysText(data, output), csv: () => toCsv(data) }
  }
  const [{ body, data }, summary] = await Promise.all([fetchDays(), fetchSummary()])
  const isOfAll = appId === undefined
  return { body, text: () => chartText(data, summary.data, isOfAll, output), csv: () => toCsv(data) }
}

const sumOverDays = (days: DayCounts[], key: (typeof countKeys)[number]) =>
  days.reduce((sum, day) => sum + day[key], 0)

/** Formats the share of sent codes; null if none were sent. */
const percentText = (part: number, sent: number) =>
  sent === 0 ? null : `${Math.round((100 * part) / sent)}%`

/** @param isOfAll the days count all applications, as the summary does */
function chartText(data: DayCounts[], summary: Summary, isOfAll: boolean, { paint, columns }: Output) {
  const title = `Last ${data.length} days`
  if (summary.otpRequests === 0) return 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
  const labelWidth = Math.max(...countKeys.map((key) => key.length)) + 2
  const numbersWidth = 22
  const barsMax = Math.min(data.length, (columns() ?? 120) - labelWidth - numbersWidth)
  const sent = sumOverDays(data, 'sent')
  const today = data.at(-1)
  const colours = { sent: paint.cyan, verified: paint.green, failed: paint.red }
  const rows = countKeys.map((key) => {
    const bars = sparkline(
      data.map((day) => day[key]),
      barsMax,
    )
    const sum = sumOverDays(data, key)
    const rate = key === 'sent' ? '' : (percentText(sum, sent) ?? '')
    return {
      label: key.padEnd(labelWidth),
      bars,
      paint: colours[key],
      numbers: `${formatNumber(sum).padStart(9)}${formatNumber(today?.[key] ?? 0).padStart(8)}${rate.padStart(5)}`,
    }
  })
  const barsWidth = Math.max(...rows.map(({ bars }) => Bun.stringWidth(bars)))
  const leftWidth = Math.max(labelWidth + barsWidth, title.length)
  const chart = rows.map(({ label, bars, paint: colour, numbers }) =>
    `${label}${colour(bars)}${' '.repeat(leftWidth - labelWidth - Bun.stringWidth(bars))}${numbers}`.trimEnd(),
  )
  return [
    `${paint.bold(title)}${' '.repeat(leftWidth - title.length)}${paint.dim(`${'total'.padStart(9)}${'today'.padStart(8)}`)}`,
    ...chart,
    ...(isOfAll
      ? [
          paint.dim(
            `applications ${formatNumber(summary.applications)}, active users ${formatNumber(summary.activeUsers)}, ` +
              `success ${summary.successRate}% overall`,
          ),
        ]
      : []),
  ].join('\n')
}

function summaryText(summary: Summary, { paint }: Output) {
  const lines: [string, string][] = [
    ['Codes', formatNumber(summary.otpRequests)],
    ['Verified', `${formatNumber(summary.otpVerified)} (${summary.successRate}%)`],
    ['Applications', formatNumber(summary.applications)],
    ['Active users', `${formatNumber(summary.activeUsers)} in the last 30 days`],
  ]
  return formatFacts(lines, paint, '')
}

function daysText(days: DayCounts[], { formatTable }: Output) {
  const rows = days.map((day) => [
    day.date,
    ...countKeys.map((key) => formatNumber(day[key])),
    percentText(day.verified, day.sent) ?? '',
  ])
  return formatTable(['DAY (UTC)', 'SENT', 'VERIFIED', 'FAILED', 'RATE'], rows)
}
