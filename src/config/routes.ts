import { findChannelNeeds, type ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { inboxProvider, type Route } from '../domain/model/delivery.ts'
import { hasCallingCode } from '../domain/model/numbering-plans.ts'
import { findCountry, isKnownCountry } from '../domain/model/phone.ts'
import { channels, type Channel } from '../domain/model/request.ts'
import { strategies, type Strategy } from '../domain/model/route-choice.ts'
import type { Reader } from './reader.ts'
import { fileKeys } from './settings.ts'
import { suggest } from '../shared/suggestion.ts'
import { providerNamePattern, type ConfigTable } from './tables.ts'

const routeKeys: readonly string[] = [
  'channel',
  'countries',
  'prefixes',
  'applications',
  'providers',
  'strategy',
]

/** A provider as routes see it; its channels are all of its kind if its settings have problems of their own. */
export type RoutableProvider = {
  kind: ProviderKind
  channels: readonly Channel[]
  values: Readonly<Record<string, string>>
}

/**
 * Reads the `[[routes]]` tables in file order, which is the order in which routes and channels are tried.
 *
 * @param providersByName undefined for a provider whose kind is invalid
 * @param priced names of the providers with prices, and of those whose prices have a problem of their own
 */
export function readRoutes(
  reader: Reader,
  tables: readonly ConfigTable[],
  providersByName: ReadonlyMap<string, RoutableProvider | undefined>,
  priced: ReadonlySet<string>,
): Route[] {
  const { report } = reader
  return tables.flatMap(readRoute)

  function readRoute({ source, keys }: ConfigTable, index: number): Route[] {
    const problemsBefore = reader.problems.length
    const keySource = (key: string) => keys.get(key)?.source ?? source
    for (const key of keys.keys()) {
      if (!routeKeys.includes(key)) {
        report(
          keySource(key),
          `Routes have no setting ${key}.`,
          suggest(key, [...routeKeys, ...fileKeys]) ?? `Use ${routeKeys.join(', ')}.`,
        )
      }
    }
    const channel = channels.find((candidate) => candidate === keys.get('channel')?.value)
    if (!channel)
      report(keySource('channel'), 'The route has no valid channel.', `Use one of ${channels.join(', ')}.`)
    /**
     * @param correct the value that a person means by an invalid one; undefined if that is unknown
     * @returns null, with the fault reported, if it is no list of such values
     */
    const readList = (
      key: string,
      isValidText: (text: string) => boolean,
      example: string,
      correct: (text: string) => string | undefined = () => undefined,
    ): string[] | null => {
      const value: unknown = keys.get(key)?.value ?? []
      const isValid = (one: unknown): one is string => typeof one === 'string' && isValidText(one)
      if (Array.isArray(value) && value.every(isValid)) return value
      const invalid: unknown = Array.isArray(value) ? value.find((one) => !isValid(one)) : value
      const corrected = typeof invalid === 'string' ? correct(invalid) : undefined
      report(
        keySource(key),
        Array.isArray(value)
          ? `${key} has ${JSON.stringify(invalid)}, which is not valid.`
          : `${key} is not a list.`,
        corrected === undefined ? `Write it as ${example}.` : `Write ["${corrected}"].`,
      )
      return null
    }
    const matches = (pattern: RegExp) => (text: string) => pattern.test(text)
    const addPlus = (text: string) => (hasCallingCode(`+${text}`) ? `+${text}` : undefined)
    const isPrefix = matches(/^\+[1-9]\d{0,14}$/)
    const isApplication = matches(/^app_[0-9a-z]{26}$/)
    const selection = {
      countries: readList('countries', isKnownCountry, '["NL", "BE"]', findCountry) ?? [],
      prefixes: readList('prefixes', isPrefix, '["+31", "+3246"]', addPlus) ?? [],
      applications: readList('applications', isApplication, '["app_…"], with application ids') ?? [],
    }
    const providers = readList('providers', matches(providerNamePattern), '["main", "spare"]')
    if (providers) checkProviders(providers, keySource('providers'), channel)
    const route = { channel: channel ?? 'sms', ...selection, providers: providers ?? [] }
    const strategy = keys.has('strategy')
      ? readStrategy(keys.get('strategy')?.value, keySource('strategy'))
      : undefined
    if (strategy) checkPrices(strategy, route.providers, keySource('strategy'))
    if (reader.problems.length > problemsBefore) return []
    for (const [key, value] of Object.entries(route)) {
      if (value.length > 0)
        reader.values.push({ setting: `routes.${index + 1}.${key}`, value, origin: source })
    }
    if (!strategy) return [route]
    reader.values.push({ setting: `routes.${index + 1}.strategy`, value: strategy, origin: source })
    return [{ ...route, strategy }]
  }

  function readStrategy(value: unknown, source: string): Strategy | undefined {
    const strategy = strategies.find((name) => name === value)
    if (!strategy)
      report(
        source,
        'The route has no valid strategy.',
        (typeof value === 'string' ? suggest(value, strategies) : undefined) ??
          `Use one of ${strategies.join(', ')}.`,
      )
    return strategy
  }

  /** Strategies that weigh prices need those of every provider: one without would look like the dearest. */
  function checkPrices(strategy: Strategy, providerNames: readonly string[], source: string) {
    if (strategy !== 'cost' && strategy !== 'balanced') return
    for (const name of providerNames.filter((one) => providersByName.has(one) && !priced.has(one)))
      report(
        source,
        `The strategy ${strategy} needs prices, and the provider ${name} has none.`,
        `Add price = { default = "0.05" } to it, or use the strategy conversion.`,
      )
  }

  function checkProviders(providerNames: readonly string[], source: string, channel: Channel | undefined) {
    if (providerNames.length === 0) report(source, 'The route has no providers.', 'Add providers = ["NAME"].')
    if (providerNames.includes(inboxProvider) && providerNames.length > 1) {
      report(
        source,
        `${inboxProvider} cannot be combined with other providers.`,
        `Use providers = ["${inboxProvider}"], or remove it.`,
      )
    }
    const problemsBefore = reader.problems.length
    for (const name of providerNames) {
      const kind = providersByName.get(name)?.kind
      if (name === inboxProvider) continue
      if (!providersByName.has(name))
        report(
          source,
          `There is no provider ${name}.`,
          suggest(name, [...providersByName.keys()]) ?? 'Add a [[providers]] table with that name.',
        )
      else if (channel && kind && !kind.channels.includes(channel)) {
        report(
          source,
          `${kind.title} does not support ${channel}.`,
          `It supports ${kind.channels.join(', ')}.`,
        )
      }
    }
    if (channel && reader.problems.length === problemsBefore) checkChannel(providerNames, source, channel)
  }

  /** Refuses a route whose providers all lack what the channel needs; if one has it, the server only warns of the others. */
  function checkChannel(providerNames: readonly string[], source: string, channel: Channel) {
    const found = providerNames.map((name) => providersByName.get(name))
    const [name] = providerNames
    const [first] = found
    if (name === undefined || !first || found.some((one) => !one || one.channels.includes(channel))) return
    const { isChosen, lacked } = findChannelNeeds(first.kind, first.values, channel)
    const missing = [
      ...(isChosen ? [] : [`${channel} to the channels of ${name}`]),
      ...(lacked === undefined ? [] : [`${lacked} to ${name}`]),
    ]
    report(
      source,
      `No provider of the route is set up for ${channel}.`,
      `Add ${missing.join(' and ')}, or remove the route.`,
    )
  }
}
