import { expect, test } from 'bun:test'
import { formatMoney, formatUnitCost, savedText } from '../../../cli/client/costs.ts'

test.each([
  ['0', '0.00', '0.0000'],
  ['1234.5', '1,234.50', '1,234.5000'],
  ['0.01', '0.01', '0.0100'],
  ['-0.05', '-0.05', '-0.0500'],
  // Less than a cent, or than a hundredth of one.
  ['0.0042', '0.0042', '0.0042'],
  ['-0.009', '-0.0090', '-0.0090'],
  ['0.00994', '0.0099', '0.0099'],
  ['0.00996', '0.0100', '0.0100'],
  ['0.000079', '0.000079', '0.000079'],
  // Sums of decimal numbers are a little off.
  [0.1 + 0.2 - 0.3, '0.00', '0.0000'],
  [0.3 - 0.1 - 0.2, '0.00', '0.0000'],
  [0.06 - 0.05, '0.01', '0.0100'],
  [null, '-', '-'],
])('the amount %p is shown as %s, and as %s for one code', (amount, money, unitCost) => {
  expect([formatMoney(amount), formatUnitCost(amount)]).toEqual([money, unitCost])
})

test('savings of less than a cent are said', () => {
  expect(savedText(0.0042, 'EUR')).toBe('saved about 0.0042 EUR')
})
