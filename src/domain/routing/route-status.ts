import type { Clock } from '../model/clock.ts'
import type { Price } from '../model/price.ts'
import type { Channel } from '../model/request.ts'
import type {
  ChoiceCandidate,
  ConversionEstimate,
  RouteCell,
  RouteChoice,
  Strategy,
} from '../model/route-choice.ts'
import type { Store } from '../store/store.ts'
import { dayMs } from '../../shared/durations.ts'
import { chooseProviders } from './choice.ts'

/** Days of messages that the savings are estimated from. */
export const savingsDays = 30

/** The route to a country, with its providers in the order of the configuration. */
export type CountryRoute = { strategy: Strategy; candidates: readonly ChoiceCandidate[] }

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
  /** Cost of these messages at the first provider, less their cost at those that sent them; null if a price is unknown. */
  saved: Price | null
}

export type RouteStatusService = ReturnType<typeof createRouteStatusService>

/** Creates the service that shows developers which providers their next messages would take, and why. */
export function createRouteStatusService(needs: {
  store: Store<'analytics'>
  clock: Clock
  /** Finds the route of live messages to any number of a country; undefined if there is none. */
  findCountryRoute(channel: Channel, country: string): CountryRoute | undefined
  learning: {
    listCells(): readonly RouteCell[]
    estimate(cell: RouteCell): ConversionEstimate
  }
  /** Currency of all prices; undefined if costs are not counted. */
  currency(): string | undefined
}) {
  const { store, clock, learning } = needs

  /** Messages of a developer by country, of each channel and provider. */
  function createSentReader(developerId: string) {
    const sums = new Map<string, Promise<ReadonlyMap<string | null, number>>>()
    const lastDay = Math.floor(clock.now() / dayMs)
    const range = { firstDay: lastDay - savingsDays + 1, lastDay, environment: undefined, costsFrom: 0 }
    return async (provider: string, channel: Channel, country: string): Promise<number> => {
      const key = `${provider}/${channel}`
      const filter = { provider, channel }
      const found =
        sums.get(key) ??
        store.read.analytics
          .breakdown(developerId, 'country', { ...range, filter })
          .then((rows) => new Map(rows.map((row) => [row.key, row.sent])))
      sums.set(key, found)
      return (await found).get(country) ?? 0
    }
  }

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
      const readSent = createSentReader(developerId)
      const destinations = new Map(
        learning
          .listCells()
          .flatMap(({ channel, country }) =>
            country === null ? [] : [[`${channel}/${country}`, { channel, country }] as const],
          ),
      )
      const rows = [...destinations.values()].map(async ({ channel, country }) => {
        const route = needs.findCountryRoute(channel, country)
        const [first] = route?.candidates ?? []
        if (!route || !first) return []
        const { strategy, candidates } = route
        const sent = await Promise.all(candidates.map(({ provider }) => readSent(provider, channel, country)))
        const total = sent.reduce((sum, count) => sum + count, 0)
        const saved = strategy === 'order' ? null : estimateSavings(candidates, sent)
        const base = { channel, country, strategy, firstProvider: first.provider, sent: total, saved }
        return [{ ...base, ...order(channel, country, route) }]
      })
      const byUse = (a: RouteStatus, b: RouteStatus) => b.sent - a.sent || (a.country < b.country ? -1 : 1)
      return (await Promise.all(rows)).flat().toSorted(byUse)
    },
  }
}

/** Compares the prices of the providers that sent messages with that of the first one; null if one is unknown. */
function estimateSavings(candidates: readonly ChoiceCandidate[], sent: readonly number[]): Price | null {
  const firstPrice = candidates[0]?.price ?? null
  let saved = 0
  for (const [index, { price }] of candidates.entries()) {
    const count = sent[index] ?? 0
    if (count === 0) continue
    if (price === null || firstPrice === null) return null
    saved += count * (firstPrice - price)
  }
  return saved
}
