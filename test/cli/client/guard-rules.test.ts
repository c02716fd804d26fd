import { expect, test } from 'bun:test'
import { readEnd } from '../../../cli/client/guard-rules.ts'

const now = Date.parse('2027-03-01T12:00:00Z')

test.each([
  ['30m', '2027-03-01T12:30:00.000Z'],
  ['24h', '2027-03-02T12:00:00.000Z'],
  ['7d', '2027-03-08T12:00:00.000Z'],
])('a rule for %s ends at %s', (text, end) => {
  expect(readEnd(text, now)).toBe(end)
})

test.each(['0h', '1.5h', '24', '-1d', '100000m', 'soon', ''])('refuses to end a rule after "%s"', (text) => {
  expect(() => readEnd(text, now)).toThrow(`"for" must be a time like 30m, 24h or 7d, not "${text}".`)
})
