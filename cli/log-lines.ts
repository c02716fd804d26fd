import type { LogEntry } from './resources.ts'
import { printable, recentTime, type Paint } from './text.ts'

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
}

/** One entry a line: local time, type, phone, application by name, what else is known, request. */
export function logLine(entry: LogEntry, appNames: ReadonlyMap<string, string>, nowMs: number, paint: Paint) {
  const { symbol, paint: colour } = marks[entry.type] ?? { symbol: '·', paint: 'dim' }
  const appName = entry.appId === null ? '' : (appNames.get(entry.appId) ?? entry.appId)
  const cells = [
    paint.dim(recentTime(entry.at, nowMs).padEnd(8)),
    paint[colour](`${symbol} ${printable(entry.type).padEnd(18)}`),
    printable(entry.phone ?? '-').padEnd(13),
    printable(appName),
    printable(entry.detail ?? ''),
    paint.dim(entry.requestId ?? ''),
  ]
  return cells.filter((cell) => cell !== '').join('  ')
}
