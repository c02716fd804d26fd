import { describe, expect, test } from 'bun:test'
import { createColors } from 'picocolors'
import { barChart, niceCeiling, type Chart } from '../../../cli/console/lines/chart.ts'
import { displayWidth, plainText } from '../../../cli/console/spans.ts'
import { createTheme } from '../../../cli/console/theme.ts'

const draw = (values: Chart['values'], width: number, height: number, isAscii = false) =>
  barChart(
    {
      title: 'Sum',
      values,
      paint: (text) => text,
      remark: 'total 9',
      format: String,
      ends: ['2026-11-01', 'today'],
    },
    width,
    height,
    createTheme(createColors(false), isAscii),
  )
const rows = (...args: Parameters<typeof draw>) => draw(...args).map((line) => plainText(line).trimEnd())

describe('a chart', () => {
  test('has a title, labelled axes, a dot for zero and nothing for an unknown value', () => {
    expect(rows([0, 1, 4, null], 13, 4)).toEqual([
      ' Sum total 9',
      '      4│  █',
      '      0│·▄█',
      '        2026-11-01 today',
    ])
  })

  test.each([
    [7, 20],
    [30, 58],
    [90, 40],
    [90, 200],
    [0, 58],
  ])('of %i days fills %i columns and no more', (days, width) => {
    const values = Array.from({ length: days }, (_, day) => day + 1)
    const lines = draw(values, width, 8)
    expect(lines).toHaveLength(8)
    for (const line of lines.slice(1, -1)) expect(displayWidth(line)).toBeLessThanOrEqual(width)
    if (days > 0) expect(displayWidth(lines.at(-2) ?? '')).toBe(width - 1)
  })

  test('uses no glyph that common fonts lack; with --ascii, only ASCII', () => {
    const values = Array.from({ length: 40 }, (_, day) => day)
    expect(rows(values, 60, 10).join('')).toMatch(/^[ -~│▁▂▃▄▅▆▇█·]*$/)
    expect(rows(values, 60, 10, true).join('')).toMatch(/^[ -~]*$/)
  })

  test('of many days shows means, so that its scale stays that of one day', () => {
    expect(
      rows(
        Array.from({ length: 90 }, () => 10),
        40,
        4,
      )[1],
    ).toStartWith('     10│█')
  })
})

test.each([
  [0, 1],
  [1, 1],
  [7, 8],
  [11, 15],
  [2283, 2500],
  [100, 100],
  [4001, 5000],
])('the axis above %i ends at %i', (value, ceiling) => expect(niceCeiling(value)).toBe(ceiling))
