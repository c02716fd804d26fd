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

/** Formats an amount of money: two decimals at least, and as many as a price of less than a cent needs. */
export function formatMoney(amount: string | number | null | undefined): string {
  if (amount === null || amount === undefined) return '-'
  const value = Number(amount)
  const maximumFractionDigits = Math.abs(value) >= 1 ? 2 : 4
  return value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits })
}
