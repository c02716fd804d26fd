import type { Check } from '../../src/shared/check.ts'
import { printable, wrapText, type Paint } from '../terminal/text.ts'

/**
 * Formats one line per check with its remedy below it, and a summary at the end.
 *
 * @param columns width of the terminal, at which lines are wrapped; null without a terminal
 */
export function checksText(checks: readonly Check[], paint: Paint, columns: number | null = null): string {
  const symbols = { ok: paint.green('✓'), warning: paint.yellow('▲'), fault: paint.red('✗') }
  const nameWidth = Math.max(...checks.map(({ name }) => Bun.stringWidth(name)))
  const margin = ' '.repeat(nameWidth + 4)
  const room = columns === null ? Infinity : Math.max(30, columns - margin.length - 2)
  const lines = checks.flatMap(({ name, status, message, remedy }) => {
    const label = name + ' '.repeat(nameWidth - Bun.stringWidth(name))
    const [firstLine = '', ...continuation] = wrapText(printable(message), room)
    const [hint, ...remedyContinuation] = remedy === null ? [] : wrapText(printable(remedy), room)
    return [
      `${symbols[status]} ${label}  ${firstLine}`,
      ...continuation.map((line) => margin + line),
      ...(hint === undefined ? [] : [`${margin}${paint.dim('→')} ${hint}`]),
      ...remedyContinuation.map((line) => `${margin}  ${line}`),
    ]
  })
  return [...lines, '', summary(checks)].join('\n')
}

function summary(checks: readonly Check[]) {
  const count = (status: Check['status'], noun: string) => {
    const total = checks.filter((check) => check.status === status).length
    return total === 0 ? [] : `${total} ${noun}${total === 1 ? '' : 's'}`
  }
  const parts = [count('fault', 'fault'), count('warning', 'warning')].flat()
  return parts.length === 0 ? 'No problems found.' : `${parts.join(', ')}.`
}
