import type { ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { inboxProvider, type Route } from '../domain/model/delivery.ts'
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

/**
 * Reads the `[[routes]]` tables in file order, which is the order in which routes and channels are tried.
 *
 * @param providerKinds kinds by provider name; undefined for a provider whose kind is invalid
 * @param priced names of the providers with prices, and of those whose prices have a problem of their own
 */
export function readRoutes(
  reader: Reader,
  tables: readonly ConfigTable[],
  providerKinds: ReadonlyMap<string, ProviderKind | undefined>,
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
    /** @returns null, with the fault reported, if it is no list of such values */
    const readList = (key: string, pattern: RegExp, example: string): string[] | null => {
      const value: unknown = keys.get(key)?.value ?? []
      const isValid = (one: unknown): one is string => typeof one === 'string' && pattern.test(one)
      if (Array.isArray(value) && value.every(isValid)) return value
      const fault = Array.isArray(value)
        ? `has ${JSON.stringify(value.find((one) => !isValid(one)))}, which is not valid.`
        : 'is not a list.'
      report(keySource(key), `${key} ${fault}`, `Write it as ${example}.`)
      return null
    }
    const selection = {
      countries: readList('countries', /^[A-Z]{2}$/, '["NL", "BE"]') ?? [],
      prefixes: readList('prefixes', /^\+[1-9]\d{0,14}$/, '["+31", "+3246"]') ?? [],
      applications: readList('applications', /^app_[0-9a-z]{26}$/, '["app_…"], with application ids') ?? [],
    }
    const providers = readList('providers', providerNamePattern, '["main", "spare"]')
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
    for (const name of providerNames.filter((one) => providerKinds.has(one) && !priced.has(one)))
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
    for (const name of providerNames) {
      const kind = providerKinds.get(name)
      if (name === inboxProvider) continue
      if (!providerKinds.has(name))
        report(
          source,
          `There is no provider ${name}.`,
          suggest(name, [...providerKinds.keys()]) ?? 'Add a [[providers]] table with that name.',
        )
      else if (channel && kind && !kind.channels.includes(channel)) {
        report(
          source,
          `${kind.title} does not support ${channel}.`,
          `It supports ${kind.channels.join(', ')}.`,
        )
      }
    }
  }
}
