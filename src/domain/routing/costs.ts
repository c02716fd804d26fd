import type { Developer } from '../model/developer.ts'
import type { FindCountryRoute } from '../model/route-choice.ts'
import { createSavingsEstimator, sumSavings } from './savings.ts'
import { addRows, type AnalyticsService, type BreakdownItem, type CountedDays } from '../log/analytics.ts'

/** Counts and costs of the messages that one provider had for one country. The key is the country. */
type CostItem = BreakdownItem & { provider: string; saved: number | null }

export type CostService = ReturnType<typeof createCostService>

/** Creates the service that shows what codes cost, and what the strategies of routes saved. */
export function createCostService(needs: {
  analytics: Pick<AnalyticsService, 'listCells' | 'describeRow' | 'costCurrency'>
  findCountryRoute: FindCountryRoute
}) {
  const { analytics, findCountryRoute } = needs

  return {
    /** Lists the costs by country and provider, the dearest first. */
    async list(developer: Developer, days: CountedDays): Promise<CostItem[]> {
      const [cells, currency] = await Promise.all([
        analytics.listCells(developer.id, days),
        analytics.costCurrency(),
      ])
      const estimateSavings = createSavingsEstimator(cells, findCountryRoute)
      const byDestination = Map.groupBy(cells, ({ country, provider }) => `${country}/${provider}`)
      return [...byDestination.values()]
        .flatMap((channels) => {
          const [first] = channels
          // One row: the channels have the same key.
          return addRows(channels.map(({ row }) => ({ ...row, key: first?.country ?? null }))).map((row) => ({
            ...analytics.describeRow(row, 'country', currency),
            provider: first?.provider ?? '',
            saved: currency ? sumSavings(channels.map(estimateSavings)) : null,
          }))
        })
        .toSorted(
          (a, b) =>
            (b.costs?.cost ?? 0) - (a.costs?.cost ?? 0) ||
            b.sent - a.sent ||
            (`${a.key} ${a.provider}` < `${b.key} ${b.provider}` ? -1 : 1),
        )
    },
  }
}
