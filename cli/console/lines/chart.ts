import { justify, type Line, type Painter } from '../spans.ts'
import type { Theme } from '../theme.ts'

const blocks = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** Keeps the axes of charts below each other in line. */
const labelWidthMin = 6

export type Chart = {
  title: string
  /** Oldest first; null where there is nothing to measure. */
  values: readonly (number | null)[]
  paint: Painter
  /** Shown at the right of the title: today's value, the total. */
  remark: string
  /** Top of the axis; by default a round number above the largest value. */
  ceiling?: number
  /** Formats a value of the axis. */
  format(value: number): string
  /** Names of the first and the last value. */
  ends: readonly [string, string]
}

/** Draws a chart of bars with a vertical and a horizontal axis, in exactly `height` lines of at most `width` columns. */
export function barChart(chart: Chart, width: number, height: number, theme: Theme): Line[] {
  const { paint, symbols } = theme
  const bars = theme.bars?.bars ?? blocks
  const rows = Math.max(1, height - 2)
  const ceiling = chart.ceiling ?? niceCeiling(Math.max(0, ...chart.values.map((value) => value ?? 0)))
  const labels = axisLabels(ceiling, rows, chart.format)
  const labelWidth = Math.max(labelWidthMin, ...labels.map((label) => label.length))
  const room = Math.max(1, width - labelWidth - 3)
  const columns = spread(chart.values, room)
  const body = labels.map((label, row): Line => {
    const rowsBelow = rows - 1 - row
    const cells = columns.map((value) => cell(value, ceiling, rows, rowsBelow, bars, symbols.dot))
    return [
      { text: ` ${label.padStart(labelWidth)}${symbols.bar}`, paint: paint.dim },
      { text: cells.join(''), paint: chart.paint },
    ]
  })
  const [first, last] = chart.ends
  const indent = ' '.repeat(labelWidth + 2)
  return [
    justify(
      [' ', { text: chart.title, paint: paint.bold }],
      { text: `${chart.remark} `, paint: paint.dim },
      width,
    ),
    ...body,
    {
      text: `${indent}${first}${last.padStart(Math.max(last.length + 1, columns.length - first.length))}`,
      paint: paint.dim,
    },
  ]
}

/** Returns one value per column. Values are widened to fill the room, and summed up where there are too many. */
function spread(values: readonly (number | null)[], room: number): (number | null)[] {
  const size = Math.ceil(values.length / room)
  const groups: (number | null)[] = []
  // From the newest backwards, so that the last bar always covers a full group.
  for (let end = values.length; end > 0; end -= size)
    groups.unshift(mean(values.slice(Math.max(0, end - size), end)))
  const count = Math.max(1, groups.length)
  const gap = room / count >= 3 ? 1 : 0
  return Array.from({ length: groups.length === 0 ? 0 : room }, (_, column) => {
    const index = Math.floor((column * count) / room)
    const isGap = gap === 1 && Math.floor(((column + 1) * count) / room) !== index
    const value = groups[index] ?? null
    // One dot for a zero, however wide its bar would be.
    const isFirst = column === 0 || Math.floor(((column - 1) * count) / room) !== index
    return isGap || (value === 0 && !isFirst) ? null : value
  })
}

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
}

/** Returns the character of a column in one row; zero is a dot at the bottom, so that it differs from no value. */
function cell(
  value: number | null,
  ceiling: number,
  rows: number,
  rowsBelow: number,
  bars: readonly string[],
  dot: string,
) {
  if (value === null) return ' '
  if (value === 0) return rowsBelow === 0 ? dot : ' '
  const level = Math.max(1, Math.round((value / ceiling) * rows * bars.length))
  const inRow = Math.min(bars.length, level - rowsBelow * bars.length)
  return inRow <= 0 ? ' ' : (bars[inRow - 1] ?? ' ')
}

/** Labels the top, the middle and the bottom of the axis. */
function axisLabels(ceiling: number, rows: number, format: (value: number) => string): string[] {
  const middle = Math.floor(rows / 2)
  return Array.from({ length: rows }, (_, row) => {
    if (row === 0) return format(ceiling)
    if (row === rows - 1) return format(0)
    // A row's label names the value at its top.
    return row === middle && rows >= 5 && rows % 2 === 0 && ceiling % 2 === 0 ? format(ceiling / 2) : ''
  })
}

const ceilingSteps = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]

/** Returns the smallest round number that is not below a value: 1, 2, …, 10, 15, 20, 25, … */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  const candidates = ceilingSteps.map((step) => step * power).filter(Number.isInteger)
  return candidates.find((candidate) => candidate >= value) ?? 10 * power
}
