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
  test('is cut by what it takes on the screen, not by characters', () => {
    expect(drawLine('東京アプリ', 7, '…')).toBe('東京ア…')
    expect(drawLine('東京アプリ', 6, '…')).toBe('東京…')
    expect(drawLine('e\u0301e\u0301e\u0301', 3, '…')).toBe('e\u0301e\u0301e\u0301')
    expect(drawLine(['a', { text: 'bcd', paint: paint.red }], 3, '~')).toBe(`a${paint.red('b~')}`)
  })

  test('makes control characters harmless, wherever the text is from', () => {
    const output = drawLine(['\u001b[2J', { text: 'a\nb\u202e', paint: paint.green }], 40, '…')
    expect(Bun.stripANSI(output)).toBe('�[2Ja�b�')
    expect(output).not.toContain('\u001b[2J')
  })

  test('spread over the width keeps its right end', () => {
    expect(drawLine(justify('left', 'right', 20), 20, '…')).toBe('left           right')
    expect(drawLine(justify('much too long for it', 'right', 12), 12, '…')).toBe('much t right')
  })

  test('of words is broken between them, and inside one that is too long', () => {
    expect(wrap('one two three', 8)).toEqual(['one two', 'three'])
    expect(wrap('abcdefghij kl', 4)).toEqual(['abcd', 'efgh', 'ij', 'kl'])
  })

  test('that is typed shows its end, and one that has to be read whole goes on below', () => {
    expect(visibleTail('abcdef', 4)).toBe('cdef')
    expect(visibleTail('東京アプリ', 5)).toBe('プリ')
    expect(breakText('abcdef', 4)).toEqual(['abcd', 'ef'])
    expect(breakText('東京 アプリ', 5)).toEqual(['東京 ', 'アプ', 'リ'])
    expect(breakText('e\u0301e\u0301e\u0301', 2)).toEqual(['e\u0301e\u0301', 'e\u0301'])
    expect(breakText('', 5)).toEqual([])
  })

  test.each(['short', '東京アプリ', 'a very long text indeed', ''])('cell of %p has its width', (text) => {
    expect(displayWidth(fitSpan(text, 8, '…'))).toBe(8)
  })
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

  test('are left out where there is no room, the most spare first', () => {
    expect(titles(40)).toEqual(['ID', 'NAME', 'MORE', 'MOST'])
    expect(titles(39)).toEqual(['ID', 'NAME', 'MORE'])
    expect(titles(20)).toEqual(['ID', 'NAME'])
    expect(titles(5)).toEqual(['ID', 'NAME'])
  })

  test.each([16, 39, 60, 200])('are as wide in every row as in the heading, in %i columns', (width) => {
    const fitted = fitColumns(columns, width)
    const heading = drawLine(headingLine(fitted, '…', paint.dim), width, '…')
    for (const name of ['x', '東京アプリケーション', 'e\u0301'.repeat(40)]) {
      const row = rowLine(fitted, { id: 'id', name }, '…', '> ')
      expect(displayWidth(row)).toBe(fitted.reduce((sum, column) => sum + column.fittedWidth + 2, 0))
      expect(displayWidth(row)).toBeLessThanOrEqual(width)
      const at = (title: string) => Bun.stripANSI(heading).indexOf(title)
      expect(at('NAME')).toBe(10)
    }
  })

  test('grow no further than they should', () => {
    expect(fitColumns(columns, 200).map(({ fittedWidth: fitted }) => fitted)).toEqual([6, 20, 10, 10])
  })
})

describe('the window of a list', () => {
  test.each([
    ['stays where it is while the row is inside', 5, 7, 10, 100, 5],
    ['moves down by what is needed', 5, 15, 10, 100, 6],
    ['moves up by what is needed', 5, 3, 10, 100, 3],
    ['leaves no room empty at the end', 95, 99, 10, 100, 90],
    ['begins at the top where everything fits', 3, 2, 10, 5, 0],
    ['of nothing is at the top', 7, -1, 10, 0, 0],
  ])('%s', (_, before, index, height, count, offset) => {
    expect(windowOffset(before, index, height, count)).toBe(offset)
  })
})

test('a phone is masked but for its country and its last digits', () => {
  expect(maskPhone('+14155552671')).toBe('+1415***2671')
  expect(maskPhone('+4912345')).toBe('+4***')
})
