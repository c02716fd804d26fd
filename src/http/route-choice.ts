import { Type } from '@sinclair/typebox'
import { formatPrice, type Price } from '../domain/model/price.ts'
import { choiceReasons, learningStrategies, type RouteChoice } from '../domain/model/route-choice.ts'
import { nullable, object, oneOf } from './schemas.ts'

/** Properties of a provider that a strategy weighs. */
export const weighedProvider = {
  provider: Type.String({ description: 'Name of the provider.' }),
  price: nullable(
    Type.String({ description: 'Price of a message, a decimal number; null if it is not configured.' }),
  ),
  conversion: Type.Number({
    description:
      'Percentage of its codes that are expected to be verified, 0 to 100. With fewer than 50 samples it is also based on those of the region, of the provider, and of other providers.',
  }),
  samples: Type.Integer({
    description:
      'Codes to the country whose outcome is known, where there are enough those of known senders alone. One counts half after a day; at most 1000.',
  }),
}

export const routeChoice = object(
  {
    strategy: { ...oneOf(learningStrategies), description: 'Strategy of the route.' },
    reason: {
      ...oneOf(choiceReasons),
      description:
        '`best`: it has the best estimate. `explored`: it was chosen so that its estimate stays current. `untried`: the best one already had a message of this code. `others_silent`: codes of the better ones have not been verified lately. `others_open`: the circuits of the better ones are open.',
    },
    considered: Type.Array(object(weighedProvider, 'ConsideredProvider'), {
      description: 'The providers that were considered, in the order in which they are tried.',
    }),
  },
  'RouteChoice',
)

export const presentPrice = (price: Price | null | undefined) => (price == null ? null : formatPrice(price))

/** A share as a percentage with one decimal. */
export const toPercentage = (share: number) => Math.round(share * 1000) / 10

/** Converts the decision of a strategy to its JSON form. */
export const presentChoice = ({ strategy, reason, considered }: RouteChoice) => ({
  strategy,
  reason,
  considered: considered.map(({ provider, price, conversion, samples }) => ({
    provider,
    price: presentPrice(price),
    conversion: toPercentage(conversion),
    samples: Math.round(samples),
  })),
})
