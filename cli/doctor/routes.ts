import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider } from '../../src/server/start.ts'
import { ok, warning, type Check } from '../../src/shared/check.ts'

type Route = Config['delivery']['routes'][number]

const isCatchAll = ({ countries, prefixes, applications }: Route) =>
  countries.length + prefixes.length + applications.length === 0

const isInbox = ({ providers }: Route) => providers.includes('inbox')

/** Reports routes that cannot send, are shadowed, or leave out phones that may get codes. */
export function routeChecks({ delivery, guard }: Config, providers: readonly ConfiguredProvider[]): Check[] {
  const { routes } = delivery
  const name = 'routes'
  if (routes.length === 0) return [ok(name, 'none: every provider is used for all its channels')]
  const sendingRoutes = routes.filter((route) => !isInbox(route))
  if (sendingRoutes.length === 0) {
    return [
      warning(
        name,
        'all routes lead to the inbox: codes of live applications stay there',
        `Set in one of the [[routes]]: providers = ["${providers[0]?.name ?? 'main'}"]`,
      ),
    ]
  }
  const checks = [
    ...routes.flatMap((route, index) => capabilityChecks(route, index, providers)),
    ...routes.flatMap((route, index) => shadowChecks(route, index, routes)),
    ...coverageChecks(
      routes.filter((route, index) => findShadowingRoute(route, index, routes) === -1),
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

/**
 * Reports providers in a route whose settings do not support its channel, such as a missing sender. Another one of the route
 * supports it, or the configuration would be refused.
 */
function capabilityChecks(route: Route, index: number, providers: readonly ConfiguredProvider[]): Check[] {
  const { channel } = route
  const routeProviders = providers.filter(({ name }) => route.providers.includes(name))
  const incapable = routeProviders.filter(({ channels }) => !channels.includes(channel))
  return incapable.map(({ name }) =>
    warning(
      'routes',
      `route ${index + 1} sends ${channel} through ${name}, whose settings for ${channel} are incomplete`,
      `Complete ${name} (otpd docs providers), or remove it from the route.`,
    ),
  )
}

/** Reports a route that is never used: for each channel the first matching route wins, and an earlier one covers it. */
function shadowChecks(route: Route, index: number, routes: readonly Route[]): Check[] {
  const shadowIndex = findShadowingRoute(route, index, routes)
  if (shadowIndex === -1) return []
  return [
    warning(
      'routes',
      `route ${index + 1} is never used: route ${shadowIndex + 1} already matches all of its ${route.channel}`,
      `Move it before route ${shadowIndex + 1}: the first matching route wins.`,
    ),
  ]
}

/** Finds the index of the first earlier route that matches everything this one does; -1 if there is none. */
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

/**
 * Reports allowed countries that no route covers.
 *
 * @param allowed countries that may get codes; empty for all
 */
function coverageChecks(routes: readonly Route[], allowed: readonly string[]): Check[] {
  if (routes.some(isCatchAll)) return []
  const isCovered = (country: string) =>
    routes.some(
      ({ countries, prefixes, applications }) =>
        prefixes.length + applications.length === 0 && countries.includes(country),
    )
  const uncovered = allowed.filter((country) => !isCovered(country))
  if (allowed.length > 0 && uncovered.length === 0) return []
  const remedy = 'Add a last [[routes]] entry with only a channel and providers, which matches every phone.'
  if (uncovered.length > 0) {
    return [
      warning(
        'routes',
        `no route matches every phone of ${uncovered.join(', ')}, although codes are allowed there`,
        remedy,
      ),
    ]
  }
  const scopes = [...new Set(routes.map(scopeText))].join(', ')
  return [warning('routes', `they match only ${scopes}; no other phone can get a code`, remedy)]
}
