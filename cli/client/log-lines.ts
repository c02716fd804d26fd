import type { LogEntry } from './resources.ts'
import type { Output } from '../terminal/output.ts'
import { truncate, printable, recentTime } from '../terminal/text.ts'

type Mark = { symbol: string; paint: 'green' | 'red' | 'yellow' | 'cyan' | 'dim' }

const marks: Partial<Record<string, Mark>> = {
  'otp.sent': { symbol: '→', paint: 'cyan' },
  'otp.delivered': { symbol: '●', paint: 'green' },
  'otp.undelivered': { symbol: '✗', paint: 'red' },
  'otp.verified': { symbol: '✓', paint: 'green' },
  'otp.failed': { symbol: '✗', paint: 'red' },
  'otp.expired': { symbol: '○', paint: 'dim' },
  'otp.canceled': { symbol: '○', paint: 'dim' },
  'otp.blocked': { symbol: '✗', paint: 'red' },
  'otp.attempt_failed': { symbol: '▲', paint: 'yellow' },
  'webhook.disabled': { symbol: '▲', paint: 'yellow' },
  'guard.flagged': { symbol: '▲', paint: 'yellow' },
  'guard.alert': { symbol: '▲', paint: 'red' },
}

/**
 * Formats a log entry as one line: local time, type, phone, application name, detail, request. On a narrow terminal
 * application and detail are truncated first; if that is not enough, the request is left out.
 */
export function logLine(
  entry: LogEntry,
  appNames: ReadonlyMap<string, string>,
  nowMs: number,
  { paint, columns }: Pick<Output, 'paint' | 'columns'>,
) {
  const { symbol, paint: colour } = marks[entry.type] ?? { symbol: '·', paint: 'dim' }
  const appName = entry.appId === null ? '' : (appNames.get(entry.appId) ?? entry.appId)
  const leadingCells = [
    paint.dim(recentTime(entry.at, nowMs).padEnd(8)),
    paint[colour](`${symbol} ${printable(entry.type).padEnd(18)}`),
    printable(entry.phone ?? '-').padEnd(13),
  ]
  const middleCells = [printable(appName), printable(entry.detail ?? '')]
  const request = paint.dim(entry.requestId ?? '')
  const fullLine = joinCells([...leadingCells, ...middleCells, request], '  ')
  const width = columns() ?? Infinity
  if (Bun.stringWidth(fullLine) <= width) return fullLine
  const widthLeft = (lastCell: string) =>
    width - Bun.stringWidth(joinCells([...leadingCells, lastCell], ' ')) - 1
  const requestCell = widthLeft(request) < middleWidthMin ? '' : request
  return joinCells(
    [
      ...leadingCells,
      truncate(joinCells(middleCells, ' '), Math.max(0, widthLeft(requestCell)), '…'),
      requestCell,
    ],
    ' ',
  )
}

const middleWidthMin = 4

const joinCells = (cells: string[], gap: string) => cells.filter((cell) => cell !== '').join(gap)
