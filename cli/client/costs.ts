import type { Environment } from '../../src/shared/otp-values.ts'
import type { Api } from './api.ts'
import type { BreakdownRow } from './resources.ts'

/** Counts and costs of the codes that one provider has sent to one country. */
export type CostRow = BreakdownRow & { provider: string }

type Query = { range: '7d' | '30d' | '90d'; environment?: Environment | undefined }

/** Fetches the costs by country and provider, the most expensive first. */
export async function fetchCosts(api: Api, { range, environment }: Query): Promise<CostRow[]> {
  const query = { range, environment }
  const providers = await fetchRows(api, { ...query, by: 'provider' })
  const rows = await Promise.all(
    providers.flatMap(({ key: provider }) => (provider === null ? [] : fetchCountries(api, query, provider))),
  )
  return rows.flat().toSorted((a, b) => costOf(b) - costOf(a) || b.sent - a.sent)
}

const fetchCountries = async (api: Api, query: Query, provider: string) =>
  (await fetchRows(api, { ...query, by: 'country', provider })).map((row) => ({ ...row, provider }))

const fetchRows = async (api: Api, query: Query & { by: 'country' | 'provider'; provider?: string }) =>
  (await api.asDeveloper('GET', '/v1/analytics/breakdown', { query })).data

/** Cost as a number, to sort and draw by; 0 if it is unknown. */
export const costOf = ({ cost }: Pick<BreakdownRow, 'cost'>) => Number(cost ?? 0)

/** Sums up rows of one currency. */
export function sumCosts(rows: readonly CostRow[]) {
  const sum = (pick: (row: CostRow) => number | null | undefined) =>
    rows.reduce((total, row) => total + (pick(row) ?? 0), 0)
  const [cost, verified] = [sum(costOf), sum(({ verified }) => verified)]
  return {
    sent: sum(({ sent }) => sent),
    verified,
    cost,
    estimatedCost: sum(({ estimatedCost }) => Number(estimatedCost ?? 0)),
    unpriced: sum(({ unpriced }) => unpriced),
    costPerVerified: verified === 0 ? null : cost / verified,
  }
}

/** Formats an amount of money: two decimals at least, and as many as a price of less than a cent needs. */
export function formatMoney(amount: string | number | null | undefined): string {
  if (amount === null || amount === undefined) return '-'
  const value = Number(amount)
  const maximumFractionDigits = Math.abs(value) >= 1 ? 2 : 4
  return value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits })
}
