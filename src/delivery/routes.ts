import { inboxProvider, type Destination, type Route, type Way } from '../domain/model/delivery.ts'
import type { Channel } from '../domain/model/request.ts'

export type Routing = {
  channelsTo(destination: Destination): Channel[]
  waysTo(destination: Destination, channels: readonly Channel[]): Way[]
}

/**
 * Of each channel the first route that fits a destination counts, and no other. The order of the routes is the order of
 * the channels. Test applications and virtual numbers are never sent anything, and neither is anybody while there is no
 * provider, so that the first code can be verified within a minute of the installation.
 */
export function createRouting(routes: readonly Route[]): Routing {
  const staysHere = ({ environment, isVirtual }: Destination) =>
    environment === 'test' || isVirtual || routes.length === 0
  const routesTo = (destination: Destination) => {
    const first = new Map<Channel, Route>()
    for (const route of routes) {
      if (!first.has(route.channel) && fits(route, destination)) first.set(route.channel, route)
    }
    return first
  }

  return {
    channelsTo: (destination) => (staysHere(destination) ? ['sms'] : [...routesTo(destination).keys()]),

    waysTo(destination, channels) {
      if (staysHere(destination)) return channels.map((channel) => ({ channel, provider: inboxProvider }))
      const found = routesTo(destination)
      return channels.flatMap((channel) =>
        (found.get(channel)?.providers ?? []).map((provider) => ({ channel, provider })),
      )
    },
  }
}

function fits({ countries, prefixes, applications }: Route, { phone, country, appId }: Destination): boolean {
  if (countries.length > 0 && (country === null || !countries.includes(country))) return false
  if (prefixes.length > 0 && !prefixes.some((prefix) => phone.startsWith(prefix))) return false
  return applications.length === 0 || applications.includes(appId)
}

/** Without routes of the operator's: every provider, in its order, for everybody. */
export function usualRoutes(
  providers: ReadonlyArray<{ name: string; channels: readonly Channel[] }>,
): Route[] {
  const channels = [...new Set(providers.flatMap((provider) => provider.channels))]
  return channels.map((channel) => ({
    channel,
    countries: [],
    prefixes: [],
    applications: [],
    providers: providers.filter((one) => one.channels.includes(channel)).map(({ name }) => name),
  }))
}
