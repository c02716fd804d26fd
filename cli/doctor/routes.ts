import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider } from '../../src/server/start.ts'
import { fault, ok, warning, type Check } from './check.ts'

type Route = Config['delivery']['routes'][number]

const isCatchAll = ({ countries, prefixes, applications }: Route) =>
  countries.length + prefixes.length + applications.length === 0

const isInbox = ({ providers }: Route) => providers.includes('inbox')

/** Routes that reach nobody, or not everybody who may get codes. */
export function routeChecks({ delivery, guard }: Config, providers: readonly ConfiguredProvider[]): Check[] {
  const { routes } = delivery
  const name = 'routes'
  if (routes.length === 0) return [ok(name, 'none: each provider carries all that it can')]
  const sendingRoutes = routes.filter((route) => !isInbox(route))
  if (sendingRoutes.length === 0) {
    return [
      warning(
        name,
        'each of them leads to the inbox: codes of live applications stay there',
        `Write below one of the [[routes]]: providers = ["${providers[0]?.name ?? 'main'}"]`,
      ),
    ]
  }
  const checks = [
    ...routes.flatMap((route, index) => capabilityChecks(route, index, providers)),
    ...routes.flatMap((route, index) => shadowChecks(route, index, routes)),
    ...coverageChecks(
      routes.filter(
        (route, index) =>
          findShadowingRoute(route, index, routes) === -1 && (isInbox(route) || canSend(route, providers)),
      ),
      guard.countries,
    ),
  ]
  return checks.length > 0 ? checks : [ok(name, sendingRoutes.map(routeText).join('; '))]
}

const routeText = ({ channel, providers, ...route }: Route) =>
  `${channel}${isCatchAll({ channel, providers, ...route }) ? '' : ` to ${scopeText({ channel, providers, ...route })}`} by ${providers.join(', ')}`

function scopeText({ countries, prefixes, applications }: Route): string {
  const separator = countries.length > 0 && prefixes.length > 0 ? ' with ' : ''
  const places = countries.join(', ') + separator + prefixes.join(', ')
  if (applications.length === 0) return places
  return places === '' ? 'some applications' : `${places} for some applications`
}

const canSend = (route: Route, providers: readonly ConfiguredProvider[]) =>
  providers.some(({ name, channels }) => route.providers.includes(name) && channels.includes(route.channel))

/** A provider carries only what its settings are enough for, such as a channel with a sender of its own. */
function capabilityChecks(route: Route, index: number, providers: readonly ConfiguredProvider[]): Check[] {
  const { channel } = route
  const routeProviders = providers.filter(({ name }) => route.providers.includes(name))
  const incapable = routeProviders.filter(({ channels }) => !channels.includes(channel))
  return incapable.map(({ name }) =>
    (canSend(route, providers) ? warning : fault)(
      'routes',
      `route ${index + 1} gives ${channel} to ${name}, whose settings lack what ${channel} needs`,
      `Complete ${name} (README, Providers), or take it out of the route.`,
    ),
  )
}

/** Of each channel the first route that fits counts, so that one behind a wider one is never asked. */
function shadowChecks(route: Route, index: number, routes: readonly Route[]): Check[] {
  const shadowIndex = findShadowingRoute(route, index, routes)
  if (shadowIndex === -1) return []
  return [
    warning(
      'routes',
      `route ${index + 1} is never used: route ${shadowIndex + 1} takes all of its ${route.channel}`,
      `Move it before route ${shadowIndex + 1}: the first one that fits counts.`,
    ),
  ]
}

/** The place of the first route before this one that takes all that it could; -1 where there is none. */
const findShadowingRoute = (route: Route, index: number, routes: readonly Route[]) =>
  routes.findIndex(
    (candidate, otherIndex) =>
      otherIndex < index && candidate.channel === route.channel && covers(candidate, route),
  )

function covers(wide: Route, narrow: Route): boolean {
  const isSubset = (
    outer: readonly string[],
    inner: readonly string[],
    matches: (a: string, b: string) => boolean,
  ) =>
    outer.length === 0 ||
    (inner.length > 0 && inner.every((innerItem) => outer.some((outerItem) => matches(outerItem, innerItem))))
  const isEqual = (a: string, b: string) => a === b
  return (
    isSubset(wide.countries, narrow.countries, isEqual) &&
    isSubset(wide.prefixes, narrow.prefixes, (prefix, longer) => longer.startsWith(prefix)) &&
    isSubset(wide.applications, narrow.applications, isEqual)
  )
}

/** @param allowed the countries that get codes; empty for all */
function coverageChecks(routes: readonly Route[], allowed: readonly string[]): Check[] {
  if (routes.some(isCatchAll)) return []
  const isCovered = (country: string) =>
    routes.some(
      ({ countries, prefixes, applications }) =>
        prefixes.length + applications.length === 0 && countries.includes(country),
    )
  const uncovered = allowed.filter((country) => !isCovered(country))
  if (allowed.length > 0 && uncovered.length === 0) return []
  const remedy = 'Add a last [[routes]] with a channel and providers alone, which fits everybody.'
  if (uncovered.length > 0) {
    return [
      warning('routes', `none fits every phone of ${uncovered.join(', ')}, which may get codes`, remedy),
    ]
  }
  const scopes = [...new Set(routes.map(scopeText))].join(', ')
  return [warning('routes', `they reach ${scopes} alone; nobody else can get a code`, remedy)]
}
