import type {
  ChoiceCandidate,
  ChoiceQuestion,
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

type Rated = {
  candidate: ChoiceCandidate
  estimate: ConversionEstimate
  /** Logarithm of its price. */
  logPrice: number
  score: number
  rank: number
}

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
 * message of this code. A first message goes to another provider than the best in 2 to 10 of 100 cases: in 2 to any, the
 * better ones more often, in 8 to the winner of a Thompson sampling, which is the best one again if the estimates are
 * certain.
 *
 * @param estimateCell expected conversion of a provider
 * @param random returns a number in [0, 1)
 */
export function chooseProviders(
  { strategy, channel, country, candidates }: ChoiceQuestion,
  estimateCell: (cell: RouteCell) => ConversionEstimate,
  random: () => number,
): RouteChoice {
  const weight = weights[strategy]
  // One without a price is taken for as dear as the dearest, a free one for almost free.
  let dearest = 1
  for (const { price } of candidates) dearest = Math.max(dearest, price ?? 1)
  const rated = candidates.map((candidate): Rated => {
    const estimate = estimateCell({ provider: candidate.provider, channel, country })
    const logPrice = Math.log(Math.max(1, candidate.price ?? dearest))
    const score = weight.conversion * Math.log(estimate.conversion) - weight.price * logPrice
    return { candidate, estimate, logPrice, score, rank: rankOf(candidate, estimate) }
  })
  rated.sort((a, b) => a.rank - b.rank || b.score - a.score)
  const isFirstMessage = !candidates.some(({ wasTried }) => wasTried)
  const explored = isFirstMessage ? explore(rated, weight, random) : 0
  const reason = explored > 0 ? 'explored' : reasonFor(rated)
  if (explored > 0) rated.unshift(...rated.splice(explored, 1))
  return { channel, strategy, reason, considered: rated.map(toConsidered) }
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
  const available = rated.findLastIndex(({ candidate }) => !candidate.isOpen) + 1
  if (available < 2) return 0
  if (share < exploredMin) return drawOther(rated.slice(0, available), random)
  let winner = 0
  let highest = -Infinity
  for (let index = 0; index < available; index++) {
    const one = rated[index]
    if (!one || one.estimate.isSilent) continue
    const drawn = drawConversion(one.estimate, random)
    const score = weight.conversion * Math.log(drawn) - weight.price * one.logPrice
    if (score > highest) [winner, highest] = [index, score]
  }
  return winner
}

/** Draws a provider after the first, each in proportion to its value: with `cost`, each costs about the same money. */
function drawOther(rated: readonly Rated[], random: () => number): number {
  const shares = rated.slice(1).map(({ score }) => Math.exp(score))
  let left = random() * shares.reduce((sum, share) => sum + share, 0)
  // None is found if rounding leaves a rest.
  const drawn = shares.findIndex((share) => (left -= share) < 0)
  return 1 + Math.max(0, drawn)
}

/** Draws a conversion from the normal approximation of its beta distribution. */
function drawConversion({ conversion, samples }: ConversionEstimate, random: () => number): number {
  const deviation = Math.sqrt((conversion * (1 - conversion)) / (samples + assumedSamples))
  // Box-Muller.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.min(1, Math.max(0.001, conversion + deviation * normal))
}

/** Explains why the first one comes first. */
function reasonFor(rated: readonly Rated[]): ChoiceReason {
  let best = rated[0]
  for (const one of rated) if (best && one.score > best.score) best = one
  if (!best || best === rated[0]) return 'best'
  if (best.candidate.isOpen) return 'others_open'
  return best.estimate.isSilent ? 'others_silent' : 'untried'
}

const toConsidered = ({ candidate, estimate }: Rated): ConsideredProvider => ({
  provider: candidate.provider,
  price: candidate.price,
  conversion: estimate.conversion,
  samples: estimate.samples,
})
