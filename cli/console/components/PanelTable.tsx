import { Box } from 'ink'
import { fitColumns, headingLine, rowLine, type Column } from '../columns.ts'
import { useConsole } from '../console-context.ts'
import { wrap, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'
import { Rule } from './Rule.tsx'

type Props<Row> = {
  title: string
  /** Undefined until they are loaded. */
  rows: readonly Row[] | undefined
  columns: readonly Column<Row>[]
  empty: string
  width: number
  height: number
}

/** A titled table without selection, of a fixed size; its last line says how many rows did not fit. */
export function PanelTable<Row>({ title, rows, columns, empty, width, height }: Props<Row>) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const fitted = fitColumns(columns, width, rows)
  const room = height - 2
  const lines: Line[] = (rows ?? []).map((row) => rowLine(fitted, row, symbols.ellipsis, '  '))
  if (lines.length > room) {
    const hidden = lines.length - room + 1
    lines.splice(room - 1, hidden, { text: `  ${symbols.down} ${hidden} more`, paint: paint.dim })
  }
  const message = rows === undefined ? 'Loading' : empty
  const body: Line[] =
    lines.length > 0
      ? [headingLine(fitted, symbols.ellipsis, paint.dim), ...lines]
      : wrap(message, width - 3).map((text) => ({ text: `  ${text}`, paint: paint.dim }))
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0}>
      <Rule width={width} title={title} />
      <Lines lines={body} width={width} height={height - 1} />
    </Box>
  )
}
