import { Box } from 'ink'
import { useLayoutEffect } from 'react'
import { fitColumns, headingLine, rowLine, type Column } from '../columns.ts'
import { useConsole } from '../console-context.ts'
import type { List } from '../hooks/use-list.ts'
import { selectionBar, toSpans, wrap, type Line } from '../spans.ts'
import { FilterLine } from './FilterLine.tsx'
import { Lines } from './Lines.tsx'

type Props<Row> = {
  list: List<Row>
  columns: readonly Column<Row>[]
  width: number
  /** Shown when there are no rows: says how to get one. */
  empty: readonly string[]
  /** Shown when the filter matches none of the rows: says what was searched. */
  noMatch?: string
  /** Returns the line of a row that is drawn without columns; null for other rows. */
  renderLine?(row: Row): Line | null
}

/** Draws the visible rows of a list under column titles: one line more than the height given to `useList`. */
export function ListTable<Row>({ list, columns, width, empty, noMatch, renderLine }: Props<Row>) {
  const { theme, listPosition } = useConsole()
  const { paint, symbols } = theme
  const fittedColumns = fitColumns(columns, width, list.rows)
  const rows = list.rows.slice(list.offset, list.offset + list.height).map((row, index) => {
    const isSelected = list.offset + index === list.index
    const pointer = { text: `${symbols.pointer} `, paint: list.isActive ? paint.cyan : paint.dim }
    const prefix = isSelected ? pointer : '  '
    const ownLine = renderLine?.(row) ?? null
    const line =
      ownLine === null ? rowLine(fittedColumns, row, symbols.ellipsis, prefix) : [prefix, ...toSpans(ownLine)]
    return isSelected && list.isActive ? selectionBar(line, width, theme) : line
  })
  const texts = list.canSearchMore
    ? ['No row here matches. Press enter to search beyond these.']
    : list.hasFilter && !list.isServerFiltered
      ? [noMatch ?? 'No matching rows.']
      : empty
  const emptyLines: readonly Line[] = [
    '',
    ...texts.flatMap((line) => wrapSentence(line, width - 2)).map((line) => `  ${line}`),
  ]
  const isLong = list.rows.length > list.height
  const position = isLong && list.isActive ? `${list.index + 1} of ${list.rows.length}` : ''
  useLayoutEffect(() => {
    if (position === '') return
    listPosition.set(() => position)
    return () => listPosition.set(() => '')
  }, [listPosition, position])
  return (
    <Box flexDirection="column" width={width} flexShrink={0}>
      <Lines lines={[headingLine(fittedColumns, symbols.ellipsis, paint.dim)]} width={width} />
      <Lines lines={list.rows.length === 0 ? emptyLines : rows} width={width} height={list.height} />
      {list.hasFilter && <FilterLine list={list} width={width} />}
    </Box>
  )
}

/** Wraps a sentence and repeats its indent, which marks a command, on every line. */
function wrapSentence(text: string, width: number) {
  const indent = text.slice(0, text.search(/\S|$/))
  return wrap(text, width - indent.length).map((line) => indent + line)
}
