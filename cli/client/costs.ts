import type { CostRow } from './resources.ts'

/** Cost as a number, to sort and draw by; 0 if it is unknown. */
export const costOf = ({ cost }: Pick<CostRow, 'cost'>) => Number(cost ?? 0)

/** Sums up rows of one currency. */
export function sumCosts(rows: readonly CostRow[]) {
  const sum = (pick: (row: CostRow) => number | null | undefined) =>
    rows.reduce((total, row) => total + (pick(row) ?? 0), 0)
  const [cost, verified] = [sum(costOf), sum(({ verified }) => verified)]
  const relayedCost = sum((row) => Number(row.relayedCost ?? 0))
  return {
    sent: sum(({ sent }) => sent),
    verified,
    relayed: sum(({ relayed }) => relayed),
    cost,
    relayedCost,
    estimatedCost: sum(({ estimatedCost }) => Number(estimatedCost ?? 0)),
    unpriced: sum(({ unpriced }) => unpriced),
    costPerVerified: verified === 0 ? null : (cost - relayedCost) / verified,
    saved: rows.every(({ saved }) => saved === null) ? null : sum(({ saved }) => Number(saved ?? 0)),
  }
}

/** Says what strategies saved: `saved about 12.50 EUR`, or `cost about 3.00 EUR more`. */
export const savedText = (saved: number, currency: string | null) => {
  const amount = `${formatMoney(Math.abs(saved))} ${currency ?? ''}`.trim()
  return saved < 0 ? `cost about ${amount} more` : `saved about ${amount}`
}

/** Formats an amount of money with two decimals, which align in a column; less than a cent has more. */
export const formatMoney = (amount: string | number | null | undefined) => formatAmount(amount, 2)

/** Formats what one verified code costs, with four decimals: it is often less than a cent. */
export const formatUnitCost = (amount: string | number | null | undefined) => formatAmount(amount, 4)

function formatAmount(amount: string | number | null | undefined, digitsMin: number): string {
  if (amount === null || amount === undefined) return '-'
  // Prices have six decimals. Sums of them, as numbers, are a little off.
  const value = Math.round(Number(amount) * 1e6) / 1e6
  const isShownIn = (digits: number) => value === 0 || Math.abs(value) >= 10 ** -digits
  const digits = [digitsMin, 4].find(isShownIn) ?? 6
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    // No minus sign before a zero.
    signDisplay: 'negative',
  })
}
