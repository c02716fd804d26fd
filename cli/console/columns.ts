import { displayWidth, fitSpan, type Line, type Painter, type Span } from './spans.ts'

export type Column<Row> = {
  title: string
  /** Width on the screen; the minimum if it also grows, or is aligned to the right: those are numbers, which are never cut. */
  width: number
  /** Share of the leftover width. */
  grow?: number
  /** Limit of growth beyond the content, so that related columns stay close on a wide screen. */
  maxWidth?: number
  align?: 'right'
  /** May be dropped on a narrow screen; the highest number is dropped first. */
  dropPriority?: number
  cell(row: Row): Span
}

type FittedColumn<Row> = Column<Row> & { fittedWidth: number }

/** Spaces between two columns, and room for the pointer before the first. */
const gap = 2

/** Rows that are measured, so that a long list draws as fast as a short one. */
const measuredMax = 200

/**
 * Returns the columns that fit into `width`, with their final widths, which are the same for every row. If those that may
 * not be dropped are too wide, the widest that grows gets less than its minimum.
 *
 * @param rows what growing columns make room for, before they take the width that is left over
 */
export function fitColumns<Row>(
  columns: readonly Column<Row>[],
  width: number,
  rows: readonly Row[] = [],
): FittedColumn<Row>[] {
  const measured = rows.slice(0, measuredMax)
  const widest = new Map(
    columns.map(({ cell }) => [cell, Math.max(0, ...measured.map((row) => displayWidth(cell(row))))]),
  )
  const contentWidth = ({ cell }: Column<Row>) => widest.get(cell) ?? 0
  let visible = columns.map((column) =>
    column.align === 'right' ? { ...column, width: Math.max(column.width, contentWidth(column)) } : column,
  )
  const requiredWidth = () => visible.reduce((sum, column) => sum + column.width + gap, 0)
  while (requiredWidth() > width) {
    const lowestPriority = Math.max(...visible.map((column) => column.dropPriority ?? 0))
    if (lowestPriority === 0) break
    visible = visible.filter((column) => column.dropPriority !== lowestPriority)
  }
  const fitted = visible.map((column) => ({ ...column, fittedWidth: column.width }))
  const leftover = Math.max(0, width - requiredWidth())
  const widestGrowing = fitted.filter((column) => column.grow).toSorted((a, b) => b.width - a.width)[0]
  if (widestGrowing !== undefined)
    widestGrowing.fittedWidth = Math.max(1, widestGrowing.width - Math.max(0, requiredWidth() - width))
  // Twice: a column that needs little leaves its share to those before it, too.
  const rest = grow(fitted, grow(fitted, leftover, contentWidth), contentWidth)
  grow(fitted, rest, ({ maxWidth = Infinity }) => maxWidth)
  return fitted
}

/** Shares width among growing columns, up to a limit of each. @returns the width that is left */
function grow<Row>(
  columns: FittedColumn<Row>[],
  width: number,
  limit: (column: Column<Row>) => number,
): number {
  let leftover = width
  let sharesLeft = columns.reduce((sum, column) => sum + (column.grow ?? 0), 0)
  for (const column of columns) {
    const { grow: share = 0 } = column
    if (share === 0) continue
    const room = limit(column) - column.fittedWidth
    const extra = Math.max(0, Math.min(room, Math.floor((leftover * share) / sharesLeft)))
    column.fittedWidth += extra
    leftover -= extra
    sharesLeft -= share
  }
  return leftover
}

/** Formats the titles of the columns. */
export const headingLine = <Row>(
  columns: readonly FittedColumn<Row>[],
  ellipsis: string,
  paint: Painter,
): Line => ({
  text: columns
    .map(({ title, fittedWidth, align }) => fitSpan(title, fittedWidth, ellipsis, align).text)
    .map((text) => ' '.repeat(gap) + text)
    .join('')
    .trimEnd(),
  paint,
})

/**
 * Formats a row.
 *
 * @param pointer drawn before the row, two columns wide
 */
export const rowLine = <Row>(
  columns: readonly FittedColumn<Row>[],
  row: Row,
  ellipsis: string,
  pointer: Span,
): Line =>
  columns.flatMap((column, index) => [
    index === 0 ? pointer : ' '.repeat(gap),
    fitSpan(column.cell(row), column.fittedWidth, ellipsis, column.align),
  ])
