import {
  inboxProvider,
  type Delivery,
  type Destination,
  type DestinationRoutes,
  type Route,
} from '../domain/model/delivery.ts'
import type { Channel } from '../domain/model/request.ts'

export type Routing = Pick<Delivery, 'routesFor'>

/**
 * Picks the providers for a destination. For each channel the first matching route wins; channels are tried
 * in the order of the routes. Messages of test applications and to virtual numbers stay in the inbox, and so
 * do all messages while there are no routes, so that a first code can be verified right after installation.
 */
export function createRouting(routes: readonly Route[]): Routing {
  const isInboxOnly = ({ environment, isVirtual }: Destination) =>
    environment === 'test' || isVirtual || routes.length === 0
  const firstRouteByChannel = (destination: Destination) => {
    const firstByChannel = new Map<Channel, Route>()
    for (const route of routes) {
      if (!firstByChannel.has(route.channel) && matchesRoute(route, destination))
        firstByChannel.set(route.channel, route)
    }
    return firstByChannel
  }

  return {
    routesFor(destination) {
      if (isInboxOnly(destination)) return inboxRoutes
      const routesByChannel = firstRouteByChannel(destination)
      return {
        channels: [...routesByChannel.keys()],
        candidatesFor: (channels) =>
          channels.flatMap((channel) =>
            (routesByChannel.get(channel)?.providers ?? []).map((provider) => ({ channel, provider })),
          ),
      }
    },
  }
}

const inboxRoutes: DestinationRoutes = {
  channels: ['sms'],
  candidatesFor: (channels) => channels.map((channel) => ({ channel, provider: inboxProvider })),
}

function matchesRoute(
  { countries, prefixes, applications }: Route,
  { phone, country, appId }: Destination,
): boolean {
  if (countries.length > 0 && (country === null || !countries.includes(country))) return false
  if (prefixes.length > 0 && !prefixes.some((prefix) => phone.startsWith(prefix))) return false
  return applications.length === 0 || applications.includes(appId)
}

/**
 * Default routes if none are configured: every provider on each of its channels, in the order of the file.
 */
export function defaultRoutes(
  providers: ReadonlyArray<{ name: string; channels: readonly Channel[] }>,
): Route[] {
  const channels = [...new Set(providers.flatMap((provider) => provider.channels))]
  return channels.map((channel) => ({
    channel,
    countries: [],
    prefixes: [],
    applications: [],
    providers: providers.filter((provider) => provider.channels.includes(channel)).map(({ name }) => name),
  }))
}
