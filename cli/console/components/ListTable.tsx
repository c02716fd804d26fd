import { Box } from 'ink'
import { useLayoutEffect } from 'react'
import { fitColumns, headingLine, rowLine, type Column } from '../columns.ts'
import { useConsole } from '../console-context.ts'
import type { List } from '../hooks/use-list.ts'
import { spansOf, wrap, type Line, type Painter } from '../spans.ts'
import { FilterLine } from './FilterLine.tsx'
import { Lines } from './Lines.tsx'

type Props<Row> = {
  list: List<Row>
  columns: readonly Column<Row>[]
  width: number
  /** Shown where there is no row at all: what to do to get one. */
  empty: readonly string[]
  /** Draws a row that has no columns; null for the others. */
  lineOf?(row: Row): Line | null
}

/** Rows under headings: one line more than the height that `useList` was given. */
export function ListTable<Row>({ list, columns, width, empty, lineOf }: Props<Row>) {
  const { theme, place } = useConsole()
  const { paint, symbols } = theme
  const fitted = fitColumns(columns, width)
  const rows = list.rows.slice(list.offset, list.offset + list.height).map((row, index) => {
    const isSelected = list.offset + index === list.index
    const pointer = { text: `${symbols.pointer} `, paint: list.isActive ? paint.cyan : paint.dim }
    const lead = isSelected ? pointer : '  '
    const own = lineOf?.(row) ?? null
    const line = own === null ? rowLine(fitted, row, symbols.more, lead) : [lead, ...spansOf(own)]
    return isSelected && list.isActive ? painted(line, paint.bold) : line
  })
  const nothing: readonly Line[] = list.hasFilter
    ? ['', '  No such rows.']
    : ['', ...empty.flatMap((line) => wrapSentence(line, width - 2)).map((line) => `  ${line}`)]
  const isLong = list.rows.length > list.height
  const here = isLong && list.isActive ? `${list.index + 1} of ${list.rows.length}` : ''
  useLayoutEffect(() => {
    if (here === '') return
    place.set(() => here)
    return () => place.set(() => '')
  }, [place, here])
  return (
    <Box flexDirection="column" width={width} flexShrink={0}>
      <Lines lines={[headingLine(fitted, symbols.more, paint.dim)]} width={width} />
      <Lines lines={list.rows.length === 0 ? nothing : rows} width={width} height={list.height} />
      {list.hasFilter && <FilterLine list={list} width={width} />}
    </Box>
  )
}

/** What is indented, as a command is, stays so in every line. */
function wrapSentence(text: string, width: number) {
  const indent = text.slice(0, text.search(/\S|$/))
  return wrap(text, width - indent.length).map((line) => indent + line)
}

const painted = (line: Line, paint: Painter): Line =>
  spansOf(line).map((span) => {
    const { text, paint: own } = typeof span === 'string' ? { text: span } : span
    return { text, paint: (shown: string) => paint(own ? own(shown) : shown) }
  })
