import type { DayCounts, Summary } from '../../client/resources.ts'
import { formatNumber } from '../../terminal/text.ts'
import type { Chart } from './chart.ts'
import { valueColumns } from './facts.ts'
import { sparkline } from '../../terminal/sparkline.ts'
import { optionSpan, wrap, type Line, type Painter, type Span } from '../spans.ts'
import type { Theme } from '../theme.ts'

const ranges = ['7d', '30d', '90d'] as const
export type Range = (typeof ranges)[number]

/** Returns the range after this one; the first after the last. */
export const nextRange = (range: Range): Range => ranges[(ranges.indexOf(range) + 1) % ranges.length] ?? range

/** Formats the five counts of the summary, side by side under their names. */
export function countLines(summary: Summary, width: number, theme: Theme): Line[] {
  const counts: [name: string, short: string, value: string][] = [
    ['APPLICATIONS', 'APPS', formatNumber(summary.applications)],
    ['OTP REQUESTS', 'REQUESTS', formatNumber(summary.otpRequests)],
    ['VERIFIED', 'VERIFIED', formatNumber(summary.otpVerified)],
    ['SUCCESS', 'SUCCESS', summary.otpRequests === 0 ? '-' : `${summary.successRate}%`],
    ['ACTIVE USERS', 'USERS', formatNumber(summary.activeUsers)],
  ]
  const columnWidth = Math.min(20, Math.floor((width - 1) / counts.length))
  const isNarrow = columnWidth < 'OTP REQUESTS  '.length
  return valueColumns(
    counts.map(([name, short, value]) => [isNarrow ? short : name, value]),
    columnWidth,
    theme,
  )
}

const labelWidth = 12
const numberWidth = 8
const countKeys = ['sent', 'verified', 'failed'] as const
const colours = { sent: 'cyan', verified: 'green', failed: 'red' } as const

/**
 * Draws a bar chart by day, one row per count. Each row has its own scale, so it also states its largest day, today's
 * value and its total. With more days than columns a bar covers several days; only the oldest bar may cover fewer.
 */
export function chartLines(days: readonly DayCounts[], range: Range, width: number, theme: Theme): Line[] {
  const { paint, bars } = theme
  const room = Math.max(7, width - labelWidth - 3 * numberWidth - 2)
  const groups = groupDays(days, Math.ceil(days.length / room))
  const row = (label: string, line: string, colour: Painter, texts: readonly string[]): Line => [
    ` ${label.padEnd(labelWidth - 1)}`,
    { text: line, paint: colour },
    ...texts.map((text) => text.padStart(numberWidth)),
  ]
  const heading: Line = [
    ...rangeSpans(range, paint),
    ' '.repeat(Math.max(0, labelWidth + groups.length - rangesWidth)),
    { text: ['max', 'today', 'total'].map((text) => text.padStart(numberWidth)).join(''), paint: paint.dim },
  ]
  const today = days.at(-1)
  const total = sumCounts(days)
  const dailyRates = days.filter(({ sent }) => sent > 0).map(verifiedPercent)
  // Rates share one scale, where a full bar is 100 %.
  const rateBars = sparkline([...groups.map(verifiedPercent), 100], groups.length + 1, bars).slice(0, -1)
  return [
    heading,
    ...countKeys.map((key) => {
      const largest = Math.max(0, ...days.map((day) => day[key]))
      const line = sparkline(
        groups.map((group) => group[key]),
        groups.length,
        bars,
      )
      return row(key, line, paint[colours[key]], [largest, today?.[key] ?? 0, total[key]].map(formatNumber))
    }),
    row('verified %', rateBars, paint.green, [
      dailyRates.length === 0 ? '-' : percent(Math.max(...dailyRates)),
      shareText(today),
      shareText(total),
    ]),
  ]
}

/** Returns the four charts of the overview: sent, verified and failed codes by day, and the share that was verified. */
export function overviewCharts(days: readonly DayCounts[], { paint }: Theme): Chart[] {
  const ends = [days[0]?.date ?? '', 'today'] as const
  const total = sumCounts(days)
  const today = days.at(-1)
  return [
    ...countKeys.map((key): Chart => ({
      title: `${key[0]?.toUpperCase()}${key.slice(1)} by day`,
      values: days.map((day) => day[key]),
      paint: paint[colours[key]],
      remark: `today ${formatNumber(today?.[key] ?? 0)}   total ${formatNumber(total[key])}`,
      format: formatNumber,
      ends,
    })),
    {
      title: 'Conversion by day',
      values: days.map((day) => (day.sent === 0 ? null : verifiedPercent(day))),
      paint: paint.green,
      remark: `today ${shareText(today)}   all ${shareText(total)}`,
      ceiling: 100,
      format: (value) => `${value}%`,
      ends,
    },
  ]
}

type Counts = Pick<DayCounts, (typeof countKeys)[number]>

const percent = (rate: number) => `${Math.round(rate)}%`

/** Share of the day's codes that were verified; capped, as codes sent before midnight may be verified after it. */
const verifiedPercent = ({ sent, verified }: Counts) =>
  sent === 0 ? 0 : Math.min(100, (100 * verified) / sent)

const shareText = (counts: Counts | undefined) =>
  counts === undefined || counts.sent === 0 ? '-' : percent(verifiedPercent(counts))

const sumCounts = (days: readonly Counts[]): Counts => ({
  sent: days.reduce((sum, day) => sum + day.sent, 0),
  verified: days.reduce((sum, day) => sum + day.verified, 0),
  failed: days.reduce((sum, day) => sum + day.failed, 0),
})

function groupDays(days: readonly Counts[], size: number): Counts[] {
  const groups: Counts[] = []
  for (let end = days.length; end > 0; end -= size)
    groups.unshift(sumCounts(days.slice(Math.max(0, end - size), end)))
  return groups
}

const rangesWidth = ranges.reduce((sum, range) => sum + range.length + 2, 0)

/** Lists the ranges; the chosen one is in brackets. */
export const rangeSpans = (range: Range, paint: Theme['paint']): Span[] =>
  ranges.map((option) => optionSpan(option, option === range, paint))

/** Lists the first steps of a new account; completed ones are ticked. */
export function firstStepLines(
  hasProject: boolean,
  hasApplication: boolean,
  width: number,
  theme: Theme,
): Line[] {
  const step = (isDone: boolean, command: string): Line[] =>
    wrap(command, width - 6).map((text, index) => [
      '   ',
      index > 0 ? ' ' : theme.status(isDone ? 'done' : 'off', ''),
      ' ',
      { text, paint: isDone ? theme.paint.dim : undefined },
    ])
  return [
    { text: ' No codes yet. To send the first one, run in another terminal:', paint: theme.paint.bold },
    '',
    ...step(hasProject, 'otpd project create shop'),
    ...step(hasApplication, 'otpd app create web --project shop --env live --env-file .env.otpd'),
    ...step(false, 'otpd otp send +14155550132 --env-file .env.otpd'),
    ...step(false, 'otpd otp verify REQUEST CODE --env-file .env.otpd'),
  ]
}
