import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawBars, type Bar } from './bar-chart.ts'

const guide = readFileSync(join(import.meta.dir, '../../src/docs/performance.md'), 'utf8')

/** Rows of calls on an ordinary disk. */
const isCall = (label: string) => /: (?:send|verify)$/.test(label)

/** Draws the charts of the guide on performance from its own tables. @returns SVG by file name */
export const drawCharts = (): Record<string, string> => ({
  'bench-rates.svg': drawBars(
    'Calls per second, 64 connections, one core',
    'requests/s',
    readColumn(2).toReversed(),
  ),
  'bench-cpu.svg': drawBars('CPU time per call', 'µs', readColumn(5)),
})

/** Reads a column of the table of all rows, smallest value first. */
function readColumn(column: number): Bar[] {
  const [, table = ''] = guide.split(/^\|\s*\| requests\/s \|.*\n\|.*\n/m)
  const rows = (table.split('\n\n')[0] ?? '')
    .split('\n')
    .map((row) => row.split('|').map((cell) => cell.trim()))
  return rows
    .filter(([, label = '']) => isCall(label))
    .map(([, label = '', ...cells]) => ({
      label,
      value: Number((cells[column - 2] ?? '').replaceAll(',', '')),
      isOurs: label.startsWith('otpd'),
    }))
    .toSorted((a, b) => a.value - b.value)
}
