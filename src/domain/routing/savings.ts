import type { BreakdownRow } from '../store/analytics.ts'
import type { Price } from '../model/price.ts'
import type { FindCountryRoute, RouteCell } from '../model/route-choice.ts'

/** Verified codes that the first provider needs, so that its cost per verified code is known within about a fifth. */
const verifiedMin = 20

/** Cost and verified codes of a provider's messages to a country in some days. */
export type CellCosts = RouteCell & Pick<BreakdownRow, 'cost' | 'relayedCost' | 'unpriced' | 'verified'>

/** Estimates the savings of one of the cells; null if there is no strategy, or too little is known. */
type EstimateSavings = (cell: CellCosts) => Price | null

/**
 * Compares routes that have a strategy with their fixed order. There, the first provider would have had every message, so the
 * verified codes of another provider would have cost its cost per verified code in the same days. The savings are the
 * difference to their real cost; negative if that is higher.
 *
 * @param cells of the same days, of all providers
 */
export function createSavingsEstimator(
  cells: readonly CellCosts[],
  findCountryRoute: FindCountryRoute,
): EstimateSavings {
  return (cell) => {
    const { channel, country } = cell
    const route = country === null ? undefined : findCountryRoute(channel, country)
    if (!route || route.strategy === 'order') return null
    const names = route.candidates.map(({ provider }) => provider)
    const first = cells.find(
      (one) => one.provider === names[0] && one.channel === channel && one.country === country,
    )
    if (!first || first.verified < verifiedMin || first.unpriced > 0) return null
    if (!names.includes(cell.provider) || cell.unpriced > 0) return null
    return Math.round((cell.verified * ownCost(first)) / first.verified) - ownCost(cell)
  }
}

/** Cost of the codes whose outcome is known: without those of other systems. */
const ownCost = ({ cost, relayedCost }: CellCosts) => cost - relayedCost

/** Adds up savings; null if none is known. */
export function sumSavings(savings: ReadonlyArray<Price | null>): Price | null {
  const known = savings.filter((one) => one !== null)
  return known.length === 0 ? null : known.reduce((total, one) => total + one, 0)
}
