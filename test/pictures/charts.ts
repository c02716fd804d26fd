import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawBars } from './bar-chart.ts'

const guide = readFileSync(join(import.meta.dir, '../../src/docs/performance.md'), 'utf8')

/** Draws the charts of the guide on performance from its own tables. @returns SVG by file name */
export const drawCharts = (): Record<string, string> => ({
  'bench-rates.svg': drawBars(
    'Calls per second, 64 connections, one core',
    'requests/s',
    readRates()
      .filter(({ label }) => /: (?:send|verify)$/.test(label))
      .toSorted((a, b) => b.value - a.value),
  ),
})

/** Reads the rows of the table whose second column is the rate. */
function readRates() {
  const [, table = ''] = guide.split(/^\|\s*\| requests\/s \|.*\n\|.*\n/m)
  const rows = (table.split('\n\n')[0] ?? '').split('\n')
  return rows.map((row) => {
    const [, label = '', rate = ''] = row.split('|').map((cell) => cell.trim())
    return { label, value: Number(rate.replaceAll(',', '')), isOurs: label.startsWith('otpd') }
  })
}
