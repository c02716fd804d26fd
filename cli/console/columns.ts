import { fitSpan, type Line, type Painter, type Span } from './spans.ts'

export type Column<Row> = {
  title: string
  /** Width on the screen; the minimum if it also grows. */
  width: number
  /** Share of the leftover width. */
  grow?: number
  /** Limit of growth, so that related columns stay close on a wide screen. */
  maxWidth?: number
  align?: 'right'
  /** May be dropped on a narrow screen; the highest number is dropped first. */
  dropPriority?: number
  cell(row: Row): Span
}

export type FittedColumn<Row> = Column<Row> & { fittedWidth: number }

/** Spaces between two columns, and room for the pointer before the first. */
const gap = 2

/** Returns the columns that fit into `width`, with their final widths, which are the same for every row. */
export function fitColumns<Row>(columns: readonly Column<Row>[], width: number): FittedColumn<Row>[] {
  let visible = [...columns]
  const requiredWidth = () => visible.reduce((sum, column) => sum + column.width + gap, 0)
  while (requiredWidth() > width) {
    const lowestPriority = Math.max(...visible.map((column) => column.dropPriority ?? 0))
    if (lowestPriority === 0) break
    visible = visible.filter((column) => column.dropPriority !== lowestPriority)
  }
  let leftover = Math.max(0, width - requiredWidth())
  let sharesLeft = visible.reduce((sum, { grow = 0 }) => sum + grow, 0)
  return visible.map((column) => {
    const { grow = 0, maxWidth = Number.POSITIVE_INFINITY } = column
    const extra =
      sharesLeft === 0 ? 0 : Math.min(maxWidth - column.width, Math.floor((leftover * grow) / sharesLeft))
    leftover -= extra
    sharesLeft -= grow
    return { ...column, fittedWidth: column.width + extra }
  })
}

/** Formats the titles of the columns. */
export const headingLine = <Row>(
  columns: readonly FittedColumn<Row>[],
  ellipsis: string,
  paint: Painter,
): Line => ({
  text: columns
    .map(({ title, fittedWidth, align }) => spanText(fitSpan(title, fittedWidth, ellipsis, align)))
    .map((text) => ' '.repeat(gap) + text)
    .join('')
    .trimEnd(),
  paint,
})

const spanText = (span: Span) => (typeof span === 'string' ? span : span.text)

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
