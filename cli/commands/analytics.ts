import { Argument, Option, type Command } from 'commander'
import type { Api } from '../client/api.ts'
import type { Context, RunCommand } from '../context.ts'
import { CliError, usageError, type ExitCode, isRetryable } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import { whenAborted, runUntilInterrupted } from '../terminal/interrupt.ts'
import type { Output } from '../terminal/output.ts'
import type { DayCounts, Summary } from '../client/resources.ts'
import { sparkline } from '../terminal/sparkline.ts'
import { formatFacts } from '../terminal/text.ts'

type View = 'summary' | 'timeseries'
type Range = '7d' | '30d' | '90d'
type Options = { range?: Range; watch?: true; csv?: true }

const ranges = ['7d', '30d', '90d'] as const satisfies readonly Range[]
const rangeDefault = '30d'
const watchIntervalMs = 5000
const countKeys = ['sent', 'verified', 'failed'] as const

/** Registers the analytics command: a chart, a summary or a table of days, once or repeatedly. */
export function addAnalyticsCommand(program: Command, runCommand: RunCommand) {
  program
    .command('analytics')
    .addArgument(
      new Argument('[view]', 'summary (all time) or timeseries (day by day); default: a chart').choices([
        'summary',
        'timeseries',
      ]),
    )
    .description('count codes sent, verified and failed, by UTC day')
    .addOption(new Option('--range <days>', `${ranges.join(', ')} (default ${rangeDefault})`).choices(ranges))
    .option('--csv', 'print CSV with a header line; without a view, one line per day')
    .option('-w, --watch', 'redraw every 5 seconds, until Ctrl-C')
    .addHelpText(
      'after',
      examples(
        'otpd analytics',
        'otpd analytics summary --json',
        'otpd analytics timeseries --range 30d --csv',
      ),
    )
    .action((view: View | undefined, options: Options, command: Command) =>
      runCommand(command, (context) =>
        options.watch === true ? printRepeatedly(context, view, options) : printOnce(context, view, options),
      ),
    )
}

async function printOnce({ connect, output }: Context, view: View | undefined, options: Options) {
  if (options.csv === true && output.json) throw usageError('--csv and --json cannot be combined.')
  if (view === 'summary') refuseRange(options)
  const { api } = connect()
  if (view === undefined && !output.json && options.csv !== true) {
    const text = await chartText(api, options.range ?? rangeDefault, output)
    return output.printResult('', () => text)
  }
  if (view === 'summary') {
    const { body, data } = await api.asDeveloper('GET', '/v1/analytics/summary')
    return output.printResult(body, () => (options.csv === true ? toCsv([data]) : summaryText(data, output)))
  }
  const { body, data } = await fetchDays(api, options.range ?? rangeDefault)
  output.printResult(body, () => (options.csv === true ? toCsv(data) : daysText(data, output)))
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
  if (view === 'summary') refuseRange(options)
  const { api } = connect()
  const range = options.range ?? rangeDefault
  const draw = async () => {
    if (view === 'summary')
      return summaryText((await api.asDeveloper('GET', '/v1/analytics/summary')).data, output)
    if (view === 'timeseries') return daysText((await fetchDays(api, range)).data, output)
    return await chartText(api, range, output)
  }
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

function refuseRange({ range }: Options) {
  if (range !== undefined) throw usageError('--range does not apply to the summary, which covers all time.')
}

const fetchDays = (api: Api, range: Range) =>
  api.asDeveloper('GET', '/v1/analytics/timeseries', { query: { range } })

const formatNumber = (value: number) => value.toLocaleString('en-US')

const sumOverDays = (days: DayCounts[], key: (typeof countKeys)[number]) =>
  days.reduce((sum, day) => sum + day[key], 0)

/** Formats the share of sent codes; null if none were sent. */
const percentText = (part: number, sent: number) =>
  sent === 0 ? null : `${Math.round((100 * part) / sent)}%`

async function chartText(api: Api, range: Range, { paint, columns }: Output) {
  const [days, summary] = await Promise.all([
    fetchDays(api, range),
    api.asDeveloper('GET', '/v1/analytics/summary'),
  ])
  const { data } = days
  const title = `Last ${data.length} days`
  if (summary.data.otpRequests === 0) return 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
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
    paint.dim(
      `applications ${formatNumber(summary.data.applications)}, active users ${formatNumber(summary.data.activeUsers)}, ` +
        `success ${summary.data.successRate}% overall`,
    ),
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
  return formatTable(['DAY', 'SENT', 'VERIFIED', 'FAILED', 'RATE'], rows)
}

/** Formats CSV. The cells are numbers and dates, so none needs quotes. */
const toCsv = (rows: Record<string, string | number>[]) =>
  [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))]
    .map((cells) => cells.join(','))
    .join('\n')
