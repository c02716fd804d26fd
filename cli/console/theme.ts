import type { BarSet } from '../terminal/sparkline.ts'
import type { Paint } from '../terminal/text.ts'
import type { Painter, Span } from './spans.ts'

const unicode = {
  on: '●',
  off: '○',
  waiting: '◌',
  ok: '✓',
  fail: '✗',
  warn: '▲',
  sent: '→',
  dot: '·',
  pointer: '▸',
  breadcrumbSeparator: '›',
  mask: '•',
  ellipsis: '…',
  rule: '─',
  bar: '│',
  down: '↓',
  cursor: '█',
  corners: ['┌', '┐', '└', '┘'],
}

type Symbols = typeof unicode

const ascii: Symbols = {
  on: '*',
  off: 'o',
  waiting: '~',
  ok: '+',
  fail: 'x',
  warn: '!',
  sent: '>',
  dot: '.',
  pointer: '>',
  breadcrumbSeparator: '>',
  mask: '*',
  ellipsis: '~',
  rule: '-',
  bar: '|',
  down: 'v',
  cursor: '_',
  corners: ['+', '+', '+', '+'],
}

const asciiBars: BarSet = { zero: ' ', bars: ['_', '.', '-', '=', '+', '*', '#'] }

/** Look of a state: a symbol and a colour together, so that it can be read without colours. */
export type Tone = 'good' | 'done' | 'bad' | 'warning' | 'waiting' | 'off' | 'sent' | 'neutral'

/**
 * Colours and symbols. Only the 16 colours of the terminal's palette are used, so that light and dark themes both work;
 * with NO_COLOR `paint` changes nothing.
 */
export type Theme = ReturnType<typeof createTheme>

/** Creates the colours and symbols; `isAscii` limits all symbols to ASCII. */
export function createTheme(paint: Paint, isAscii: boolean) {
  const symbols = isAscii ? ascii : unicode
  const tones: Record<Tone, { symbol: string; paint: Painter }> = {
    good: { symbol: symbols.on, paint: paint.green },
    done: { symbol: symbols.ok, paint: paint.green },
    bad: { symbol: symbols.fail, paint: paint.red },
    warning: { symbol: symbols.warn, paint: paint.yellow },
    waiting: { symbol: symbols.waiting, paint: paint.cyan },
    off: { symbol: symbols.off, paint: paint.dim },
    sent: { symbol: symbols.sent, paint: paint.cyan },
    neutral: { symbol: symbols.dot, paint: paint.dim },
  }
  return {
    paint,
    symbols,
    isAscii,
    bars: isAscii ? asciiBars : undefined,
    tones,
    /** Formats a state: `● active`, in its colour. */
    status: (tone: Tone, label: string) => ({
      text: `${tones[tone].symbol} ${label}`.trimEnd(),
      paint: tones[tone].paint,
    }),
  }
}

const toneByStatus: Partial<Record<string, Tone>> = {
  active: 'good',
  enabled: 'good',
  verified: 'good',
  delivered: 'good',
  succeeded: 'good',
  pending: 'waiting',
  failed: 'bad',
  blocked: 'bad',
  expired: 'off',
  canceled: 'off',
  disabled: 'off',
  skipped: 'off',
}

/** Formats the status of any resource: `● active`. */
export const statusSpan = ({ status }: { status: string }, theme: Theme): Span =>
  theme.status(toneByStatus[status] ?? 'neutral', status)
