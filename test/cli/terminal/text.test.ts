import { expect, test } from 'bun:test'
import { formatTimeUntil, formatDuration, terminalJson } from '../../../cli/terminal/text.ts'

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

test('JSON for a terminal holds no character that the terminal obeys or hides, and means the same', () => {
  const units = [...Array(0xa1).keys(), 0xad, 0x61c, 0x200b, 0x200d, 0x200e, 0x2028, 0x2029, 0x202a, 0x202e]
  const text = String.fromCodePoint(...units, 0x2066, 0x2069, 0xfeff, 0xe0001, 0x1f600, 0xe9)
  const json = JSON.stringify({ name: text })
  const escaped = terminalJson(json)
  expect(escaped).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(escaped).toContain('\\u009b')
  expect(escaped).toContain('😀é')
  expect(JSON.parse(escaped)).toEqual({ name: text })
})
