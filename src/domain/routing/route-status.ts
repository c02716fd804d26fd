import type { Price } from '../model/price.ts'
import type { Channel } from '../model/request.ts'
import type {
  ChoiceCandidate,
  ConversionEstimate,
  CountryRoute,
  FindCountryRoute,
  RouteCell,
  RouteChoice,
  Strategy,
} from '../model/route-choice.ts'
import type { AnalyticsService } from '../log/analytics.ts'
import { chooseProviders } from './choice.ts'
import { createSavingsEstimator, sumSavings } from './savings.ts'

/** Days of messages that are counted, and that the savings are estimated from. */
const countedDays = 30

export type ProviderEstimate = ChoiceCandidate & ConversionEstimate

/** The providers that a message to a country would try now. */
export type RouteStatus = {
  channel: Channel
  country: string
  strategy: Strategy
  /** In the order in which they would be tried. */
  providers: readonly ProviderEstimate[]
  reason: RouteChoice['reason'] | null
  /** First provider of the configuration. */
  firstProvider: string
  /** Messages of the developer in the last 30 days. */
  sent: number
  /** Savings of the strategy on them, as `createSavingsEstimator` estimates them; null if too little is known. */
  saved: Price | null
}

export type RouteStatusService = ReturnType<typeof createRouteStatusService>

/** Creates the service that shows developers which providers their next messages would take, and why. */
export function createRouteStatusService(needs: {
  analytics: Pick<AnalyticsService, 'listCells'>
  findCountryRoute: FindCountryRoute
  learning: {
    listCells(): readonly RouteCell[]
    estimate(cell: RouteCell): ConversionEstimate
  }
  /** Currency of all prices; undefined if costs are not counted. */
  currency(): string | undefined
}) {
  const { analytics, learning } = needs

  function order(channel: Channel, country: string, { strategy, candidates }: CountryRoute) {
    const estimate = (provider: string) => learning.estimate({ provider, channel, country })
    const known = new Map(candidates.map((one) => [one.provider, { ...one, ...estimate(one.provider) }]))
    if (strategy === 'order') return { providers: [...known.values()], reason: null }
    const question = { strategy, channel, country, candidates }
    // Without exploration: the highest number that `random` may return.
    const { considered, reason } = chooseProviders(question, learning.estimate, () => 1)
    return { providers: considered.flatMap(({ provider }) => known.get(provider) ?? []), reason }
  }

  return {
    currency: needs.currency,

    /** Lists the countries that have outcomes, by channel, those with the most messages of the developer first. */
    async list(developerId: string): Promise<RouteStatus[]> {
      const cells = await analytics.listCells(developerId, { days: countedDays })
      const estimateSavings = createSavingsEstimator(cells, needs.findCountryRoute)
      const destinations = new Map(
        learning
          .listCells()
          .flatMap(({ channel, country }) =>
            country === null ? [] : [[`${channel}/${country}`, { channel, country }] as const],
          ),
      )
      const rows = [...destinations.values()].flatMap(({ channel, country }) => {
        const route = needs.findCountryRoute(channel, country)
        const [first] = route?.candidates ?? []
        if (!route || !first) return []
        const own = cells.filter((cell) => cell.channel === channel && cell.country === country)
        const sent = own.reduce((sum, cell) => sum + cell.sent, 0)
        const saved = needs.currency() === undefined ? null : sumSavings(own.map(estimateSavings))
        const base = { channel, country, strategy: route.strategy, firstProvider: first.provider }
        return [{ ...base, sent, saved, ...order(channel, country, route) }]
      })
      return rows.toSorted((a, b) => b.sent - a.sent || (a.country < b.country ? -1 : 1))
    },
  }
}
