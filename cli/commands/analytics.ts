import { Argument, Option, type Command } from 'commander'
import type { Api } from '../client/api.ts'
import type { Context } from '../context.ts'
import { CliError, usageError, type ExitCode } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import { isPassing } from '../client/follow-log.ts'
import { aborted, untilInterrupted } from '../terminal/interrupt.ts'
import type { Output } from '../terminal/output.ts'
import type { Run } from '../program.ts'
import type { DayCounts, Summary } from '../client/resources.ts'
import { sparkline } from '../terminal/sparkline.ts'
import { facts } from '../terminal/text.ts'

type View = 'summary' | 'timeseries'
type Range = '7d' | '30d' | '90d'
type Options = { range?: Range; watch?: true; csv?: true }

const ranges = ['7d', '30d', '90d'] as const satisfies readonly Range[]
const rangeDefault = '30d'
const watchEveryMs = 5000
const counted = ['sent', 'verified', 'failed'] as const

export function addAnalyticsCommand(program: Command, run: Run) {
  program
    .command('analytics')
    .addArgument(
      new Argument('[view]', 'summary: all time; timeseries: day by day; else a chart of both').choices([
        'summary',
        'timeseries',
      ]),
    )
    .description('how many codes were sent, verified and failed, in UTC days')
    .addOption(new Option('--range <days>', `${ranges.join(', ')} (${rangeDefault})`).choices(ranges))
    .option('--csv', 'comma-separated, with a heading; of the days where no view is named, like --json')
    .option('-w, --watch', 'draw it again every 5 seconds, until Ctrl-C')
    .addHelpText(
      'after',
      examples(
        'otpd analytics',
        'otpd analytics summary --json',
        'otpd analytics timeseries --range 30d --csv',
      ),
    )
    .action((view: View | undefined, options: Options, command: Command) =>
      run(command, (context) =>
        options.watch === true ? watch(context, view, options) : show(context, view, options),
      ),
    )
}

async function show({ connect, output }: Context, view: View | undefined, options: Options) {
  if (options.csv === true && output.json) throw usageError('--csv and --json are two answers; choose one.')
  if (view === 'summary') requireNoRange(options)
  const { api } = connect()
  if (view === undefined && !output.json && options.csv !== true) {
    const text = await chartText(api, options.range ?? rangeDefault, output)
    return output.answer('', () => text)
  }
  if (view === 'summary') {
    const { body, data } = await api.asDeveloper('GET', '/v1/analytics/summary')
    return output.answer(body, () => (options.csv === true ? csv([data]) : summaryText(data, output)))
  }
  const { body, data } = await findDays(api, options.range ?? rangeDefault)
  output.answer(body, () => (options.csv === true ? csv(data) : daysText(data, output)))
}

async function watch(context: Context, view: View | undefined, options: Options): Promise<ExitCode> {
  const { io, connect, output } = context
  if (output.json || options.csv === true || !io.stdoutIsTerminal)
    throw usageError(
      '--watch draws on a terminal, and there is none.',
      'Leave it out, or repeat the command.',
    )
  if (view === 'summary') requireNoRange(options)
  const { api } = connect()
  const range = options.range ?? rangeDefault
  const draw = async () => {
    if (view === 'summary')
      return summaryText((await api.asDeveloper('GET', '/v1/analytics/summary')).data, output)
    if (view === 'timeseries') return daysText((await findDays(api, range)).data, output)
    return await chartText(api, range, output)
  }
  return await untilInterrupted(io, async (signal) => {
    const interrupted = aborted(signal)
    output.note(output.paintError.dim('Every 5 seconds (Ctrl+C to quit)'))
    let linesAbove = 0
    let picture: string | undefined
    while (!signal.aborted) {
      let gap = ''
      try {
        const drawn = await Promise.race([draw(), interrupted])
        if (drawn === undefined) return
        picture = drawn
      } catch (error) {
        // A server that was there may come back; the last picture stays until then.
        if (picture === undefined || !(error instanceof CliError && isPassing(error))) throw error
        gap = `\n${output.paint.yellow('── the connection was lost, trying again ──')}`
      }
      const text = `${picture}${gap}`
      // Back to where the last picture began, and away with it.
      const back = linesAbove === 0 ? '' : `\u001b[${linesAbove}A\u001b[0J`
      io.writeOut(`${back}${text}\n`)
      linesAbove = text.split('\n').length
      await Promise.race([io.sleep(watchEveryMs), interrupted])
    }
  })
}

function requireNoRange({ range }: Options) {
  if (range !== undefined) throw usageError('A summary counts everything so far and takes no --range.')
}

const findDays = (api: Api, range: Range) =>
  api.asDeveloper('GET', '/v1/analytics/timeseries', { query: { range } })

const number = (value: number) => value.toLocaleString('en-US')

const total = (days: DayCounts[], key: (typeof counted)[number]) =>
  days.reduce((sum, day) => sum + day[key], 0)

/** Of what was sent; null where nothing was. */
const rateOf = (part: number, sent: number) => (sent === 0 ? null : `${Math.round((100 * part) / sent)}%`)

async function chartText(api: Api, range: Range, { paint, columns }: Output) {
  const [days, summary] = await Promise.all([
    findDays(api, range),
    api.asDeveloper('GET', '/v1/analytics/summary'),
  ])
  const { data } = days
  const title = `Last ${data.length} days`
  if (summary.data.otpRequests === 0) return 'No codes yet. Send one: otpd otp send PHONE --env-file FILE'
  const labelWidth = Math.max(...counted.map((key) => key.length)) + 2
  const numbersWidth = 22
  const barsMax = Math.min(data.length, (columns() ?? 120) - labelWidth - numbersWidth)
  const sent = total(data, 'sent')
  const today = data.at(-1)
  const colours = { sent: paint.cyan, verified: paint.green, failed: paint.red }
  const rows = counted.map((key) => {
    const bars = sparkline(
      data.map((day) => day[key]),
      barsMax,
    )
    const sum = total(data, key)
    const rate = key === 'sent' ? '' : (rateOf(sum, sent) ?? '')
    return {
      label: key.padEnd(labelWidth),
      bars,
      paint: colours[key],
      numbers: `${number(sum).padStart(9)}${number(today?.[key] ?? 0).padStart(8)}${rate.padStart(5)}`,
    }
  })
  const barsWidth = Math.max(...rows.map(({ bars }) => Bun.stringWidth(bars)))
  const left = Math.max(labelWidth + barsWidth, title.length)
  const chart = rows.map(({ label, bars, paint: colour, numbers }) =>
    `${label}${colour(bars)}${' '.repeat(left - labelWidth - Bun.stringWidth(bars))}${numbers}`.trimEnd(),
  )
  return [
    `${paint.bold(title)}${' '.repeat(left - title.length)}${paint.dim(`${'total'.padStart(9)}${'today'.padStart(8)}`)}`,
    ...chart,
    paint.dim(
      `applications ${number(summary.data.applications)}, active users ${number(summary.data.activeUsers)}, ` +
        `success ${summary.data.successRate}% of all time`,
    ),
  ].join('\n')
}

function summaryText(summary: Summary, { paint }: Output) {
  const lines: [string, string][] = [
    ['Codes', number(summary.otpRequests)],
    ['Verified', `${number(summary.otpVerified)} (${summary.successRate}%)`],
    ['Applications', number(summary.applications)],
    ['Active users', `${number(summary.activeUsers)} in the last 30 days`],
  ]
  return facts(lines, paint, '')
}

function daysText(days: DayCounts[], { table }: Output) {
  const rows = days.map((day) => [
    day.date,
    ...counted.map((key) => number(day[key])),
    rateOf(day.verified, day.sent) ?? '',
  ])
  return table(['DAY', 'SENT', 'VERIFIED', 'FAILED', 'RATE'], rows)
}

/** Numbers and dates alone, so nothing needs quotes. */
const csv = (rows: Record<string, string | number>[]) =>
  [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))]
    .map((cells) => cells.join(','))
    .join('\n')
