import type { Price } from '../model/price.ts'
import type { Channel } from '../model/request.ts'
import type {
  ChoiceReason,
  ConsideredProvider,
  ConversionEstimate,
  LearningStrategy,
  RouteCell,
  RouteChoice,
} from '../model/route-choice.ts'

/** Least share of first messages that go to another provider than the best, so that estimates stay current. */
const exploredMin = 0.02
/** Most such messages: the ones above the least share, for which chance decides by how uncertain the estimates are. */
const exploredMax = 0.1
/** Outcomes that are assumed for the uncertainty of an estimate in addition to those that it has. */
const assumedSamples = 10

/** A provider that may be chosen. */
export type ChoiceCandidate = {
  provider: string
  /** Null if there is no price for the number. */
  price: Price | null
  isOpen: boolean
  /** Whether it already had a message of this code. */
  wasTried: boolean
}

export type ChoiceQuestion = {
  strategy: LearningStrategy
  channel: Channel
  country: string | null
  /** In the order of the configuration, which decides between equal ones. */
  candidates: readonly ChoiceCandidate[]
}

type Rated = ChoiceCandidate & ConversionEstimate & { priceNumber: number; score: number; rank: number }

/**
 * Weights of conversion and price in the score of a provider, which is a logarithm: with 1 and 1 the highest score has the
 * least price per verified code.
 */
const weights: Readonly<Record<LearningStrategy, { conversion: number; price: number }>> = {
  cost: { conversion: 1, price: 1 },
  balanced: { conversion: 4, price: 1 },
  conversion: { conversion: 1, price: 0 },
}

/**
 * Orders the providers of a route: the chosen one, then the others by their score, for failover.
 *
 * Providers with an open circuit come last, before them those whose codes are silent, before them those that already had a
 * message of this code. A first message goes to another provider than the best in 2 to 10 of 100 cases: in 2 to any, in
 * 8 to the winner of a Thompson sampling, which is the best one again if the estimates are certain.
 *
 * @param estimate expected conversion of a provider
 * @param random returns a number in [0, 1)
 */
export function chooseProviders(
  { strategy, channel, country, candidates }: ChoiceQuestion,
  estimate: (cell: RouteCell) => ConversionEstimate,
  random: () => number,
): RouteChoice {
  const dearest = Math.max(1, ...candidates.map(({ price }) => price ?? 1))
  const weight = weights[strategy]
  const rated = candidates.map((candidate): Rated => {
    const estimated = estimate({ provider: candidate.provider, channel, country })
    // One without a price is taken for as dear as the dearest, a free one for almost free.
    const priceNumber = candidate.price === null ? dearest : Math.max(1, candidate.price)
    const score = weight.conversion * Math.log(estimated.conversion) - weight.price * Math.log(priceNumber)
    return { ...candidate, ...estimated, priceNumber, score, rank: rankOf(candidate, estimated) }
  })
  rated.sort((a, b) => a.rank - b.rank || b.score - a.score)
  const explored = rated.some(({ wasTried }) => wasTried) ? 0 : explore(rated, weight, random)
  const [chosen] = explored > 0 ? rated.splice(explored, 1) : []
  if (chosen) rated.unshift(chosen)
  return {
    channel,
    strategy,
    reason: chosen ? 'explored' : reasonFor(rated),
    considered: rated.map(toConsidered),
  }
}

const rankOf = ({ isOpen, wasTried }: ChoiceCandidate, { isSilent }: ConversionEstimate) =>
  isOpen ? 3 : isSilent ? 2 : wasTried ? 1 : 0

/** Decides whether a message explores. @returns the index of its provider; 0 for the best one */
function explore(
  rated: readonly Rated[],
  weight: { conversion: number; price: number },
  random: () => number,
): number {
  const share = random()
  if (share >= exploredMax) return 0
  const available = rated.findLastIndex(({ isOpen }) => !isOpen) + 1
  if (available < 2) return 0
  if (share < exploredMin) return 1 + Math.floor(random() * (available - 1))
  let winner = 0
  let highest = -Infinity
  for (let index = 0; index < available; index++) {
    const candidate = rated[index]
    if (!candidate || candidate.isSilent) continue
    const drawn = drawConversion(candidate, random)
    const score = weight.conversion * Math.log(drawn) - weight.price * Math.log(candidate.priceNumber)
    if (score > highest) [winner, highest] = [index, score]
  }
  return winner
}

/** Draws a conversion from the normal approximation of its beta distribution. */
function drawConversion({ conversion, samples }: ConversionEstimate, random: () => number): number {
  const deviation = Math.sqrt((conversion * (1 - conversion)) / (samples + assumedSamples))
  // Box-Muller.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.min(1, Math.max(0.001, conversion + deviation * normal))
}

/** Explains why the first one is not the best of all. */
function reasonFor(rated: readonly Rated[]): ChoiceReason {
  const [first, ...others] = rated
  const better = others.filter(({ score }) => first && score > first.score)
  const best = better.toSorted((a, b) => b.score - a.score)[0]
  if (!best) return 'best'
  return best.isOpen ? 'others_open' : best.isSilent ? 'others_silent' : 'untried'
}

const toConsidered = ({ provider, price, conversion, samples }: Rated): ConsideredProvider => ({
  provider,
  price,
  conversion,
  samples,
})
