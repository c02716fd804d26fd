import {
  candidateKey,
  inboxProvider,
  toDestination,
  type Candidate,
  type Delivery,
  type DeliveryJob,
  type Destination,
  type DestinationRoutes,
  type Route,
} from '../domain/model/delivery.ts'
import type { Channel } from '../domain/model/request.ts'
import type { ChoiceCandidate, ChooseProviders, RouteChoice } from '../domain/model/route-choice.ts'

type Routing = Pick<Delivery, 'routesFor'> & {
  /** Lists the candidates of a message in the order in which they are tried. */
  plan(job: PlannedJob): DispatchPlan
  /** The route that messages to a destination take on a channel. */
  routeFor(destination: Destination, channel: Channel): Route | undefined
}

/** Fields of a job that lead its message. */
type PlannedJob = Pick<DeliveryJob, 'channels' | 'excluded' | 'tried'> & {
  request: Omit<Destination, 'isVirtual'>
}

export type DispatchPlan = {
  candidates: readonly Candidate[]
  /** Decisions of the strategies of the routes, at most one for each channel. */
  choices: readonly RouteChoice[]
}

/** The strategies, and the facts that they choose by. */
export type Choosing = {
  choose: ChooseProviders
  /** Describes a provider as it is now. */
  describe(provider: string, destination: Destination): Pick<ChoiceCandidate, 'price' | 'isOpen'>
}

/**
 * Picks the providers for a destination. For each channel the first matching route wins; channels are tried
 * in the order of the routes. Messages of test applications and to virtual numbers stay in the inbox, and so
 * do all messages while there are no routes, so that a first code can be verified right after installation.
 *
 * @param choosing for routes with a strategy; without it, all are tried in their order
 */
export function createRouting(routes: readonly Route[], choosing?: Choosing): Routing {
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

  /** Has the strategy of a route choose among its providers. @returns undefined if it has none, or there is nothing to choose */
  function choose(route: Route, destination: Destination, job: PlannedJob): RouteChoice | undefined {
    const { channel, strategy = 'order' } = route
    if (!choosing || strategy === 'order') return undefined
    const keyOf = (provider: string) => candidateKey({ channel, provider })
    const candidates = route.providers
      .filter((provider) => !job.excluded.includes(keyOf(provider)))
      .map((provider) => ({
        provider,
        ...choosing.describe(provider, destination),
        wasTried: job.tried?.includes(keyOf(provider)) ?? false,
      }))
    if (candidates.length === 0) return undefined
    return choosing.choose({ strategy, channel, country: destination.country, candidates })
  }

  return {
    plan(job) {
      const destination = toDestination(job.request)
      if (isInboxOnly(destination))
        return { candidates: inboxRoutes.candidatesFor(job.channels), choices: [] }
      const routesByChannel = firstRouteByChannel(destination)
      const choices: RouteChoice[] = []
      const candidates = job.channels.flatMap((channel) => {
        const route = routesByChannel.get(channel)
        const choice = route && choose(route, destination, job)
        if (choice) choices.push(choice)
        const providers = choice?.considered.map(({ provider }) => provider) ?? route?.providers ?? []
        return providers.map((provider) => ({ channel, provider }))
      })
      return { candidates, choices }
    },

    routeFor: (destination, channel) =>
      isInboxOnly(destination) ? undefined : firstRouteByChannel(destination).get(channel),

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
