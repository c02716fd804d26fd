import type { DayCounts, Summary } from '../resources.ts'
import { sparkline } from '../sparkline.ts'
import { fitSpan, type Line, type Span } from './spans.ts'
import type { Theme } from './theme.ts'

export const ranges = ['7d', '30d', '90d'] as const
export type Range = (typeof ranges)[number]

const number = (value: number) => value.toLocaleString('en-US')

/** The five counts, side by side under their names. */
export function countLines(summary: Summary, width: number, { paint, symbols }: Theme): Line[] {
  const counts: [string, string][] = [
    ['APPLICATIONS', number(summary.applications)],
    ['OTP REQUESTS', number(summary.otpRequests)],
    ['VERIFIED', number(summary.otpVerified)],
    ['SUCCESS', summary.otpRequests === 0 ? '-' : `${summary.successRate}%`],
    ['ACTIVE USERS', number(summary.activeUsers)],
  ]
  const each = Math.min(20, Math.floor((width - 1) / counts.length))
  const across = (texts: string[], style: (text: string) => string): Line => [
    ' ',
    ...texts.map((text): Span => fitSpan({ text, paint: style }, each, symbols.more)),
  ]
  return [
    across(
      counts.map(([name]) => name),
      paint.dim,
    ),
    across(
      counts.map(([, value]) => value),
      paint.bold,
    ),
  ]
}

const labelWidth = 12
const counted = ['sent', 'verified', 'failed'] as const

/**
 * Day by day: bars that grow from zero, each row with a scale of its own and therefore with its largest, its newest
 * and its total.
 */
export function chartLines(days: readonly DayCounts[], range: Range, width: number, theme: Theme): Line[] {
  const { paint, bars } = theme
  const columnWidth = 8
  const barsMax = Math.max(7, Math.min(days.length, width - labelWidth - 3 * columnWidth - 2))
  const numbers = (texts: readonly string[], style?: (text: string) => string): Span[] =>
    texts.map((text) => ({ text: text.padStart(columnWidth), paint: style }))
  const row = (
    label: string,
    line: string,
    colour: (text: string) => string,
    texts: readonly string[],
  ): Line => [
    ` ${label.padEnd(labelWidth - 1)}`,
    { text: line.padEnd(barsMax), paint: colour },
    ...numbers(texts),
  ]
  const colours = { sent: paint.cyan, verified: paint.green, failed: paint.red }
  const rates = days.map(({ sent, verified }) => (sent === 0 ? 0 : Math.min(100, (100 * verified) / sent)))
  const used = rates.filter((_, index) => (days[index]?.sent ?? 0) > 0)
  const percent = (rate: number | undefined) => (rate === undefined ? '-' : `${Math.round(rate)}%`)
  const sum = (key: (typeof counted)[number]) => days.reduce((total, day) => total + day[key], 0)
  return [
    [
      ...rangeSpans(range, paint),
      ' '.repeat(Math.max(0, labelWidth + barsMax - rangesWidth)),
      ...numbers(['max', 'today', 'total'], paint.dim),
    ],
    ...counted.map((key) => {
      const values = days.map((day) => day[key])
      const texts = [Math.max(0, ...values), values.at(-1) ?? 0, sum(key)].map(number)
      return row(key, sparkline(values, barsMax, bars), colours[key], texts)
    }),
    row('verified %', rateBars(rates, barsMax, theme), paint.green, [
      percent(used.length === 0 ? undefined : Math.max(...used)),
      percent((days.at(-1)?.sent ?? 0) === 0 ? undefined : rates.at(-1)),
      percent(sum('sent') === 0 ? undefined : Math.min(100, (100 * sum('verified')) / sum('sent'))),
    ]),
  ]
}

/** The rate's scale is the same on every day: full is all. Where there are more days than columns, the newest. */
function rateBars(rates: readonly number[], columns: number, { bars }: Theme) {
  const shown = rates.slice(-columns)
  return sparkline([...shown, 100], shown.length + 1, bars).slice(0, -1)
}

const rangesWidth = ranges.reduce((sum, range) => sum + range.length + 2, 0)

const rangeSpans = (range: Range, { bold, dim }: Theme['paint']): Span[] =>
  ranges.map((one) => (one === range ? { text: `[${one}]`, paint: bold } : { text: ` ${one} `, paint: dim }))

/** What to do in an account where no code has been sent yet; what is done has its tick. */
export function firstStepLines(hasProject: boolean, hasApplication: boolean, theme: Theme): Line[] {
  const step = (isDone: boolean, command: string): Line => [
    '   ',
    isDone ? theme.status('done', '') : theme.status('off', ''),
    ' ',
    { text: command, paint: isDone ? theme.paint.dim : undefined },
  ]
  return [
    { text: ' No codes yet. To the first verified one, in another terminal:', paint: theme.paint.bold },
    '',
    step(hasProject, 'otpd project create shop'),
    step(hasApplication, 'otpd app create web --project shop --env test --env-file .env.otpd'),
    step(false, 'otpd otp send +14155550132 --env-file .env.otpd'),
    step(false, 'otpd otp verify REQUEST CODE --env-file .env.otpd'),
  ]
}
