import { expect, test } from 'bun:test'
import { formatTimeUntil, formatDuration } from '../../../cli/terminal/text.ts'

test.each([
  [1, '1 ms'],
  [499.6, '500 ms'],
  [1000, '1 s'],
  [281_000, '4 min 41 s'],
])('%d ms is formatted as %s, and never as "now"', (durationMs, expectedText) =>
  expect(formatDuration(durationMs)).toBe(expectedText),
)

test('a future moment is formatted as the time left, and as now once it has passed', () => {
  const nowMs = Date.parse('2026-11-20T12:00:00Z')
  expect(formatTimeUntil('2026-11-20T12:00:40Z', nowMs)).toBe('in 40 s')
  for (const past of ['2026-11-20T12:00:00.400Z', '2026-11-20T11:59:00Z'])
    expect(formatTimeUntil(past, nowMs)).toBe('now')
})
