import { expect, test } from 'bun:test'
import { parseTime } from '../../src/shared/times.ts'

test('a date or a time is read as Date.parse does', () => {
  for (const text of [
    '2026-11-20',
    '2028-02-29',
    '2026-11-20T23:59:59Z',
    '2026-11-20T08:00:00.123456+05:30',
    '2026-11-20 08:00',
  ])
    expect([text, parseTime(text)]).toEqual([text, Date.parse(text)])
})

test.each([
  '2027-02-29',
  '2026-02-30T12:00:00Z',
  '2026-04-31T00:00:00-11:00',
  '2026-00-01',
  '2026-13-01',
  '2026-11-20T24:00:00Z',
  '2026-11-20T25:00:00Z',
  '2026-11-20T12:60:00Z',
  'tomorrow',
  '',
])('there is no %p', (text) => {
  expect(parseTime(text)).toBeNaN()
})
