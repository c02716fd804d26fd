import type { Config } from '../../src/config/config.ts'
import type { ConfiguredProvider } from '../../src/server/start.ts'
import { fault, ok, warning, type Check } from './check.ts'

type Route = Config['delivery']['routes'][number]

const isForAll = ({ countries, prefixes, applications }: Route) =>
  countries.length + prefixes.length + applications.length === 0

const isInbox = ({ providers }: Route) => providers.includes('inbox')

/** Routes that reach nobody, or not everybody who may get codes. */
export function routeChecks({ delivery, guard }: Config, providers: readonly ConfiguredProvider[]): Check[] {
  const { routes } = delivery
  const name = 'routes'
  if (routes.length === 0) return [ok(name, 'none: each provider carries all that it can')]
  const sending = routes.filter((route) => !isInbox(route))
  if (sending.length === 0) {
    return [
      warning(
        name,
        'each of them leads to the inbox: codes of live applications stay there',
        `Write below one of the [[routes]]: providers = ["${providers[0]?.name ?? 'main'}"]`,
      ),
    ]
  }
  const checks = [
    ...routes.flatMap((route, index) => ableChecks(route, index, providers)),
    ...routes.flatMap((route, index) => shadowChecks(route, index, routes)),
    ...reachChecks(
      routes.filter(
        (route, index) =>
          findShadow(route, index, routes) === -1 && (isInbox(route) || isAble(route, providers)),
      ),
      guard.countries,
    ),
  ]
  return checks.length > 0 ? checks : [ok(name, sending.map(routeText).join('; '))]
}

const routeText = ({ channel, providers, ...route }: Route) =>
  `${channel}${isForAll({ channel, providers, ...route }) ? '' : ` to ${aimText({ channel, providers, ...route })}`} by ${providers.join(', ')}`

function aimText({ countries, prefixes, applications }: Route): string {
  const both = countries.length > 0 && prefixes.length > 0 ? ' with ' : ''
  const places = countries.join(', ') + both + prefixes.join(', ')
  if (applications.length === 0) return places
  return places === '' ? 'some applications' : `${places} for some applications`
}

const isAble = (route: Route, providers: readonly ConfiguredProvider[]) =>
  providers.some(({ name, channels }) => route.providers.includes(name) && channels.includes(route.channel))

/** A provider carries only what its settings are enough for, such as a channel with a sender of its own. */
function ableChecks(route: Route, index: number, providers: readonly ConfiguredProvider[]): Check[] {
  const { channel } = route
  const named = providers.filter(({ name }) => route.providers.includes(name))
  const unable = named.filter(({ channels }) => !channels.includes(channel))
  return unable.map(({ name }) =>
    (isAble(route, providers) ? warning : fault)(
      'routes',
      `route ${index + 1} gives ${channel} to ${name}, whose settings lack what ${channel} needs`,
      `Complete ${name} (README, Providers), or take it out of the route.`,
    ),
  )
}

/** Of each channel the first route that fits counts, so that one behind a wider one is never asked. */
function shadowChecks(route: Route, index: number, routes: readonly Route[]): Check[] {
  const before = findShadow(route, index, routes)
  if (before === -1) return []
  return [
    warning(
      'routes',
      `route ${index + 1} is never used: route ${before + 1} takes all of its ${route.channel}`,
      `Move it before route ${before + 1}: the first one that fits counts.`,
    ),
  ]
}

/** The place of the first route before this one that takes all that it could; -1 where there is none. */
const findShadow = (route: Route, index: number, routes: readonly Route[]) =>
  routes.findIndex((other, at) => at < index && other.channel === route.channel && covers(other, route))

function covers(wide: Route, narrow: Route): boolean {
  const within = (
    outer: readonly string[],
    inner: readonly string[],
    fits: (a: string, b: string) => boolean,
  ) => outer.length === 0 || (inner.length > 0 && inner.every((word) => outer.some((one) => fits(one, word))))
  const same = (a: string, b: string) => a === b
  return (
    within(wide.countries, narrow.countries, same) &&
    within(wide.prefixes, narrow.prefixes, (prefix, longer) => longer.startsWith(prefix)) &&
    within(wide.applications, narrow.applications, same)
  )
}

/** @param allowed the countries that get codes; empty for all */
function reachChecks(routes: readonly Route[], allowed: readonly string[]): Check[] {
  if (routes.some(isForAll)) return []
  const isReached = (country: string) =>
    routes.some(
      ({ countries, prefixes, applications }) =>
        prefixes.length + applications.length === 0 && countries.includes(country),
    )
  const missed = allowed.filter((country) => !isReached(country))
  if (allowed.length > 0 && missed.length === 0) return []
  const remedy = 'Add a last [[routes]] with a channel and providers alone, which fits everybody.'
  if (missed.length > 0) {
    return [warning('routes', `none fits every phone of ${missed.join(', ')}, which may get codes`, remedy)]
  }
  const aims = [...new Set(routes.map(aimText))].join(', ')
  return [warning('routes', `they reach ${aims} alone; nobody else can get a code`, remedy)]
}
