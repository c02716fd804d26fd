import type { Paint } from './text.ts'
import { pad, truncate, wrapText } from './text.ts'

/**
 * How a column gives way on a narrow terminal: `text` is truncated, `optional` is truncated and then left out, `kept` never
 * changes, `wrapped` continues in further lines, and `url` is truncated after its host. Columns of ids are recognized by
 * their cells, and shortened.
 */
type Fit = 'text' | 'optional' | 'kept' | 'wrapped' | 'url'

/** Heading of a column; a plain string heads a `text` column. */
export type Heading = string | { title: string; fit: Fit }

export const kept = (title: string): Heading => ({ title, fit: 'kept' })
export const optional = (title: string): Heading => ({ title, fit: 'optional' })
export const wrapped = (title: string): Heading => ({ title, fit: 'wrapped' })
export const urlColumn = (title: string): Heading => ({ title, fit: 'url' })

type Column = {
  title: string
  fit: Fit
  hasIds: boolean
  cells: string[]
  /** Width of the widest cell. */
  natural: number
  /** Narrowest width at which every cell can still be told apart. */
  readable: number
}

type Fitted = { columns: Column[]; widths: number[] }

const gap = 2
/** Width to which long text is truncated before any id is shortened. */
const comfortableWidth = 24
const readableWidth = 12
/** A narrower column would say nothing. */
const columnWidthMin = 4

const idPattern = /\b([a-z]{2,4}_)([0-9a-z]{26})\b/g

/** Shortens an id to its first and last characters: `otp_01m8…cvvy`. Commands accept it in this form. */
export const shortenIds = (text: string) =>
  text.replaceAll(
    idPattern,
    (_, prefix: string, digits: string) => `${prefix}${digits.slice(0, 4)}…${digits.slice(-4)}`,
  )

/**
 * Formats columns under headings, two spaces apart, each as wide as its widest cell. Cells may be coloured. With a
 * `width`, long text is truncated, then ids are shortened, then text is truncated further, and at last optional columns
 * are left out, the rightmost first, which may make room for whole ids again.
 */
export function formatTable(headings: Heading[], rows: string[][], paint: Paint, width: number | null) {
  const columns = headings.map((heading, index) => toColumn(heading, rows, index))
  const { columns: shown, widths } = width === null ? unlimited(columns) : fitColumns(columns, width)
  const lines = [
    shown.map(({ title }) => paint.dim(title)),
    ...rows.flatMap((_, row) =>
      splitLines(shown.map(({ fit, cells }, index) => fitLines(cells[row] ?? '', fit, widths[index] ?? 0))),
    ),
  ]
  return lines
    .map((line) => line.map((cell, index) => fitCell(cell, widths[index] ?? 0)).join(' '.repeat(gap)))
    .map((line) => line.trimEnd())
    .join('\n')
}

const fitLines = (cell: string, fit: Fit, width: number) =>
  fit === 'wrapped' ? wrapText(cell, width) : [cell]

/** Makes the lines of a row from the lines of its cells. */
const splitLines = (cells: string[][]): string[][] =>
  Array.from({ length: Math.max(1, ...cells.map(({ length }) => length)) }, (_, line) =>
    cells.map((lines) => lines[line] ?? ''),
  )

function toColumn(heading: Heading, rows: string[][], index: number): Column {
  const { title, fit } = typeof heading === 'string' ? { title: heading, fit: 'text' as const } : heading
  const cells = rows.map((row) => row[index] ?? '')
  return measure({ title, fit, cells, hasIds: cells.some((cell) => shortenIds(cell) !== cell) })
}

function measure({ title, fit, cells, hasIds }: Omit<Column, 'natural' | 'readable'>): Column {
  const natural = Math.max(title.length, ...cells.map((cell) => Bun.stringWidth(cell)))
  const isWhole = fit === 'kept' || (fit === 'text' && hasIds)
  const textWidth = fit === 'url' ? Math.max(...cells.map(hostWidth)) : readableWidth
  const readable = isWhole ? natural : Math.min(natural, Math.max(title.length, textWidth))
  return { title, fit, cells, hasIds, natural, readable }
}

/** Width of a URL up to the end of its host, with the character that shows that it was cut. */
function hostWidth(cell: string) {
  const [origin = ''] = /^\w+:\/\/[^/]*/.exec(Bun.stripANSI(cell)) ?? []
  return Bun.stringWidth(origin) + 1
}

const unlimited = (columns: Column[]): Fitted => ({ columns, widths: columns.map(({ natural }) => natural) })

function fitColumns(columns: Column[], width: number): Fitted {
  const short = columns.map((column) =>
    column.hasIds && column.fit !== 'kept'
      ? measure({ ...column, cells: column.cells.map(shortenIds) })
      : column,
  )
  const comfortable = ({ natural, readable }: Column) =>
    Math.min(natural, Math.max(readable, comfortableWidth))
  const attempts: [columns: Column[], widthMin: (column: Column) => number][] = [
    [columns, comfortable],
    [short, ({ readable }) => readable],
  ]
  const droppable = short.filter(({ fit }) => fit === 'optional')
  for (let count = 1; count <= droppable.length; count++) {
    const dropped = new Set(droppable.slice(-count).map((column) => short.indexOf(column)))
    const isLeft = (_: Column, index: number) => !dropped.has(index)
    // A column that is left out may make room for whole ids again.
    attempts.push([columns.filter(isLeft), comfortable], [short.filter(isLeft), ({ readable }) => readable])
  }
  const required = short.filter(({ fit }) => fit !== 'optional')
  attempts.push([
    required,
    ({ fit, hasIds, readable }) =>
      fit === 'text' && !hasIds ? Math.min(readable, columnWidthMin) : readable,
  ])
  let fitted = unlimited(columns)
  for (const [candidates, widthMin] of attempts) {
    fitted = { columns: candidates, widths: shrink(candidates, width, widthMin) }
    if (totalWidth(fitted.widths) <= width) return fitted
  }
  return fitted
}

const totalWidth = (widths: number[]) =>
  widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1)

/** Takes one character at a time from the widest column that is above its minimum. */
function shrink(columns: Column[], width: number, widthMin: (column: Column) => number): number[] {
  const widths = columns.map(({ natural }) => natural)
  for (let excess = totalWidth(widths) - width; excess > 0; excess--) {
    const slack = columns.map((column, index) => {
      const current = widths[index] ?? 0
      return current > widthMin(column) ? current : 0
    })
    const widest = Math.max(...slack)
    if (widest === 0) break
    widths[slack.indexOf(widest)] = widest - 1
  }
  return widths
}

const fitCell = (cell: string, width: number) => pad(truncate(cell, width, '…'), width)
