import type { Price } from './price.ts'
import { channels, type Channel } from './request.ts'

/** Strategies that learn from outcomes. */
export const learningStrategies = ['cost', 'conversion', 'balanced'] as const

/**
 * How a route orders its providers.
 *
 * - `order`: as the configuration lists them.
 * - `cost`: by price per verified code.
 * - `conversion`: by the share of their codes that are verified.
 * - `balanced`: by both: one percent of conversion is worth four percent of the price.
 */
export const strategies = ['order', ...learningStrategies] as const

export type Strategy = (typeof strategies)[number]
export type LearningStrategy = (typeof learningStrategies)[number]

/** A provider on a channel to a country: the unit that statistics are kept for. `country` is null if it is unknown. */
export type RouteCell = { provider: string; channel: Channel; country: string | null }

/** Formats the key of a cell: `PROVIDER/CHANNEL/COUNTRY`. */
export const formatCell = ({ provider, channel, country }: RouteCell) =>
  `${provider}/${channel}/${country ?? ''}`

/** Parses what `formatCell` wrote; undefined for anything else. */
export function parseCell(text: string): RouteCell | undefined {
  const [provider = '', channelName = '', country = ''] = text.split('/')
  const channel = channels.find((name) => name === channelName)
  return channel && { provider, channel, country: country === '' ? null : country }
}

/** Which codes an estimate is based on: those of the country, or of a larger group where these are fewer than 50. */
export const estimateScopes = ['country', 'region', 'provider', 'others', 'none'] as const

export type EstimateScope = (typeof estimateScopes)[number]

/** Share of codes that are expected to be verified. */
export type ConversionEstimate = {
  /** In (0, 1). */
  conversion: number
  /** Decayed number of outcomes that the country itself has. */
  samples: number
  scope: EstimateScope
  /** Whether so many of the last codes are unverified that messages probably do not arrive. */
  isSilent: boolean
}

/** A provider that a strategy considered. */
export type ConsideredProvider = {
  provider: string
  /** Null if there is no price for the number. */
  price: Price | null
  conversion: number
  samples: number
}

/**
 * Why a provider came first.
 *
 * - `best`: it has the best estimate.
 * - `explored`: it was chosen so that its estimate stays current.
 * - `untried`: the best one already had a message of this code.
 * - `others_silent`: codes of the better ones have not been verified lately.
 * - `others_open`: the circuits of the better ones are open.
 */
export const choiceReasons = ['best', 'explored', 'untried', 'others_silent', 'others_open'] as const

export type ChoiceReason = (typeof choiceReasons)[number]

/** The decision of a strategy. `considered` is in the order in which the providers are tried. */
export type RouteChoice = {
  channel: Channel
  strategy: LearningStrategy
  reason: ChoiceReason
  considered: readonly ConsideredProvider[]
}

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

/** Orders the providers of a route by its strategy. */
export type ChooseProviders = (question: ChoiceQuestion) => RouteChoice

/** The route to a country, with its providers in the order of the configuration. */
export type CountryRoute = { strategy: Strategy; candidates: readonly ChoiceCandidate[] }

/** Finds the route of live messages to any number of a country; undefined if there is none. */
export type FindCountryRoute = (channel: Channel, country: string) => CountryRoute | undefined
