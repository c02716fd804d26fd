import { afterEach, beforeEach, expect, test } from 'bun:test'
import { parseMoment } from '../../../cli/commands/moment.ts'

const now = Date.parse('2026-11-20T12:00:00Z')
const timeZone = process.env.TZ

beforeEach(() => void (process.env.TZ = 'Asia/Tokyo'))
afterEach(() => void (process.env.TZ = timeZone ?? 'UTC'))

test.each([
  ['10m', '2026-11-20T11:50:00Z'],
  ['3d', '2026-11-17T12:00:00Z'],
  ['72h', '2026-11-17T12:00:00Z'],
  ['1.5h', '2026-11-20T10:30:00Z'],
  ['2026-11-20T08:00:00Z', '2026-11-20T08:00:00Z'],
  // In the time zone of the times that commands print.
  ['2026-11-20', '2026-11-19T15:00:00Z'],
  ['2026-11-20 08:00', '2026-11-19T23:00:00Z'],
])('%s is %s', (text, time) => {
  expect(new Date(parseMoment(text, now)).toISOString()).toBe(time.replace('Z', '.000Z'))
})

test.each(['yesterday', '2026', '2026-02-30', '20261120', '10 m'])('%p is refused', (text) => {
  expect(() => parseMoment(text, now, '--until')).toThrow('--until must be a time like 10m')
})
