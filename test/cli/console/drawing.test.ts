import { describe, expect, test } from 'bun:test'
import { createColors } from 'picocolors'
import { fitColumns, headingLine, rowLine, type Column } from '../../../cli/console/columns.ts'
import { windowOffset } from '../../../cli/console/hooks/use-list.ts'
import { maskPhone } from '../../../cli/console/hooks/use-shell.ts'
import {
  breakText,
  drawLine,
  fitSpan,
  justify,
  visibleTail,
  displayWidth,
  wrap,
} from '../../../cli/console/spans.ts'

const paint = createColors(true)

describe('a line', () => {
  test('is cut by its width on the screen, not by its characters', () => {
    expect(drawLine('東京アプリ', 7, '…')).toBe('東京ア…')
    expect(drawLine('東京アプリ', 6, '…')).toBe('東京…')
    expect(drawLine('e\u0301e\u0301e\u0301', 3, '…')).toBe('e\u0301e\u0301e\u0301')
    expect(drawLine(['a', { text: 'bcd', paint: paint.red }], 3, '~')).toBe(`a${paint.red('b~')}`)
  })

  test('replaces control characters in every span', () => {
    const output = drawLine(['\u001b[2J', { text: 'a\nb\u202e', paint: paint.green }], 40, '…')
    expect(Bun.stripANSI(output)).toBe('�[2Ja�b�')
    expect(output).not.toContain('\u001b[2J')
  })

  test('that is justified keeps its right part', () => {
    expect(drawLine(justify('left', 'right', 20), 20, '…')).toBe('left           right')
    expect(drawLine(justify('much too long for it', 'right', 12), 12, '…')).toBe('much t right')
  })

  test('is wrapped between words, and inside a word that is too long', () => {
    expect(wrap('one two three', 8)).toEqual(['one two', 'three'])
    expect(wrap('abcdefghij kl', 4)).toEqual(['abcd', 'efgh', 'ij', 'kl'])
  })

  test('shows its end while it is typed, or is broken into pieces', () => {
    expect(visibleTail('abcdef', 4)).toBe('cdef')
    expect(visibleTail('東京アプリ', 5)).toBe('プリ')
    expect(breakText('abcdef', 4)).toEqual(['abcd', 'ef'])
    expect(breakText('東京 アプリ', 5)).toEqual(['東京 ', 'アプ', 'リ'])
    expect(breakText('e\u0301e\u0301e\u0301', 2)).toEqual(['e\u0301e\u0301', 'e\u0301'])
    expect(breakText('', 5)).toEqual([])
  })

  test.each(['short', '東京アプリ', 'a very long text indeed', ''])(
    'with the cell %p has the width of the cell',
    (text) => {
      expect(displayWidth(fitSpan(text, 8, '…'))).toBe(8)
    },
  )
})

describe('columns', () => {
  type Row = { id: string; name: string }
  const columns: Column<Row>[] = [
    { title: 'ID', width: 6, cell: ({ id }) => id },
    { title: 'NAME', width: 6, grow: 1, maxWidth: 20, cell: ({ name }) => name },
    { title: 'MORE', width: 10, dropPriority: 1, cell: () => 'more' },
    { title: 'MOST', width: 10, dropPriority: 2, cell: () => 'most' },
  ]
  const titles = (width: number) => fitColumns(columns, width).map(({ title }) => title)

  test('are dropped on a narrow screen, in the order of their drop priority', () => {
    expect(titles(40)).toEqual(['ID', 'NAME', 'MORE', 'MOST'])
    expect(titles(39)).toEqual(['ID', 'NAME', 'MORE'])
    expect(titles(20)).toEqual(['ID', 'NAME'])
    expect(titles(5)).toEqual(['ID', 'NAME'])
  })

  test.each([16, 39, 60, 200])(
    'have the same width in every row and in the heading, on %i columns',
    (width) => {
      const fitted = fitColumns(columns, width)
      const heading = drawLine(headingLine(fitted, '…', paint.dim), width, '…')
      for (const name of ['x', '東京アプリケーション', 'e\u0301'.repeat(40)]) {
        const row = rowLine(fitted, { id: 'id', name }, '…', '> ')
        expect(displayWidth(row)).toBe(fitted.reduce((sum, column) => sum + column.fittedWidth + 2, 0))
        expect(displayWidth(row)).toBeLessThanOrEqual(width)
        const at = (title: string) => Bun.stripANSI(heading).indexOf(title)
        expect(at('NAME')).toBe(10)
      }
    },
  )

  test('take from the widest growing column what is missing if no other column may be dropped', () => {
    const audit: Column<string>[] = [
      { title: 'ACTION', width: 24, cell: (text) => text },
      { title: 'TARGET', width: 20, grow: 1, cell: (text) => text },
    ]
    expect(fitColumns(audit, 47).map(({ fittedWidth }) => fittedWidth)).toEqual([24, 19])
  })

  test('make room for what is in the rows before they share the rest', () => {
    const two: Column<string>[] = [
      { title: 'URL', width: 4, grow: 3, cell: () => 'short' },
      { title: 'EVENTS', width: 6, grow: 1, cell: (text) => text },
    ]
    const widths = (width: number) =>
      fitColumns(two, width, ['x'.repeat(20)]).map(({ fittedWidth }) => fittedWidth)
    expect(widths(29)).toEqual([5, 20])
  })

  test('grow at most to their maximum width, but for what is in the rows', () => {
    const widths = (...rows: Row[]) => fitColumns(columns, 200, rows).map((column) => column.fittedWidth)
    expect(widths()).toEqual([6, 20, 10, 10])
    expect(widths({ id: '1', name: 'x'.repeat(30) })).toEqual([6, 30, 10, 10])
  })
})

describe('the window of a list', () => {
  test.each([
    ['stays while the row is inside', 5, 7, 10, 100, 5],
    ['moves down as little as possible', 5, 15, 10, 100, 6],
    ['moves up as little as possible', 5, 3, 10, 100, 3],
    ['leaves no blank lines at the end', 95, 99, 10, 100, 90],
    ['starts at the top when everything fits', 3, 2, 10, 5, 0],
    ['starts at the top when there are no rows', 7, -1, 10, 0, 0],
  ])('%s', (_, before, index, height, count, offset) => {
    expect(windowOffset(before, index, height, count)).toBe(offset)
  })
})

test('a phone is masked except for its country and its last digits', () => {
  expect(maskPhone('+14155552671')).toBe('+1415***2671')
  expect(maskPhone('+4912345')).toBe('+4***')
})
