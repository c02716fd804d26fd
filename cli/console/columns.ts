import { fitSpan, type Line, type Painter, type Span } from './spans.ts'

export type Column<Row> = {
  title: string
  /** In columns of the screen; the least where it also grows. */
  width: number
  /** Its share of what is left over. */
  grow?: number
  /** It grows no further: what belongs together is not torn apart on a wide screen. */
  widest?: number
  align?: 'right'
  /** May be left out where the screen is narrow; the highest number goes first. */
  spare?: number
  cell(row: Row): Span
}

export type FittedColumn<Row> = Column<Row> & { fitted: number }

/** Between two columns, and for the pointer in front of the first. */
const gap = 2

/** The columns that fit into `width`, each as wide as it is drawn. The same for every row, so nothing jumps about. */
export function fitColumns<Row>(columns: readonly Column<Row>[], width: number): FittedColumn<Row>[] {
  let kept = [...columns]
  const needed = () => kept.reduce((sum, column) => sum + column.width + gap, 0)
  while (needed() > width) {
    const spare = Math.max(...kept.map((column) => column.spare ?? 0))
    if (spare === 0) break
    kept = kept.filter((column) => column.spare !== spare)
  }
  let over = Math.max(0, width - needed())
  let shares = kept.reduce((sum, { grow = 0 }) => sum + grow, 0)
  return kept.map((column) => {
    const { grow = 0, widest = Number.POSITIVE_INFINITY } = column
    const extra = shares === 0 ? 0 : Math.min(widest - column.width, Math.floor((over * grow) / shares))
    over -= extra
    shares -= grow
    return { ...column, fitted: column.width + extra }
  })
}

export const headingLine = <Row>(
  columns: readonly FittedColumn<Row>[],
  more: string,
  paint: Painter,
): Line => ({
  text: columns
    .map(({ title, fitted, align }) => spanText(fitSpan(title, fitted, more, align)))
    .map((text) => ' '.repeat(gap) + text)
    .join('')
    .trimEnd(),
  paint,
})

const spanText = (span: Span) => (typeof span === 'string' ? span : span.text)

/** @param pointer drawn in front of the row; two columns wide. */
export const rowLine = <Row>(
  columns: readonly FittedColumn<Row>[],
  row: Row,
  more: string,
  pointer: Span,
): Line =>
  columns.flatMap((column, index) => [
    index === 0 ? pointer : ' '.repeat(gap),
    fitSpan(column.cell(row), column.fitted, more, column.align),
  ])
