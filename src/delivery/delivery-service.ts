import { getCountryCallingCode, isSupportedCountry } from 'libphonenumber-js/max/es6'
import {
  candidateKey,
  inboxProvider,
  toDestination,
  type Delivery,
  type DeliverySettings,
  type Failure,
  type FailureClass,
  type Receipt,
} from '../domain/model/delivery.ts'
import type { Channel } from '../domain/model/request.ts'
import type { ChooseProviders } from '../domain/model/route-choice.ts'
import type { MessageTemplates } from '../domain/model/message-settings.ts'
import type { Clock } from '../domain/model/clock.ts'
import { isLoopbackAddress } from '../shared/loopback.ts'
import type { OpenState } from './circuit-breaker.ts'
import { createCosts } from './costs.ts'
import { createDispatcher, type Report } from './dispatcher.ts'
import { createReporter } from './reporter.ts'
import { createProviderPool } from './provider-pool.ts'
import { createProviderHttp } from './kit/http-client.ts'
import { providerKinds } from './providers/all-provider-kinds.ts'
import type { ProviderKind } from './kit/provider-kinds.ts'
import type { Callback, CallbackResult } from './kit/provider.ts'
import { createRouting, defaultRoutes, type Choosing } from './routing.ts'
import { chooseTemplateText } from './text/locale-choice.ts'
import { createMessageRenderer } from './text/message-renderer.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

type DeliveryServiceNeeds = {
  clock: Clock
  /** Wall clock, comparable with the providers' clocks, for signatures and dates; default: `clock`. */
  wall?: Clock | undefined
  /** otpd version, sent as `user-agent`. */
  version: string
  templates?: MessageTemplates
  kinds?: readonly ProviderKind[]
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
  dispatchMs?: number | undefined
  callbackUrl(provider: { name: string; isLocal: boolean }): string | null
  report: Report
  onProviderTried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  /** Called by providers that receive delivery receipts over their own connection (SMPP). */
  onReceipt(provider: string, receipt: Receipt): void
  onCircuitChange(provider: string, openState: OpenState | undefined): void
  world?: World | undefined
  /** Chooses for routes with a strategy; without it, all are tried in their order. */
  choose?: ChooseProviders | undefined
}

/** A callback, with the prices of its receipts in the installation's currency. */
type ReadCallback = Exclude<CallbackResult, { kind: 'receipts' }> | { kind: 'receipts'; receipts: Receipt[] }

/**
 * Wires providers, routes and dispatcher. `routing.ts` picks the candidates of a message; `dispatcher.ts` tries
 * them. Without providers and routes until `configure` is called.
 */
export function createDeliveryService(needs: DeliveryServiceNeeds) {
  const {
    clock,
    wall = clock,
    version,
    templates,
    kinds = providerKinds,
    ca,
    callbackUrl,
    report,
    onReceipt,
    onCircuitChange,
    world = systemWorld,
  } = needs
  const http = createProviderHttp({ version, world, ...(ca !== undefined && { ca }) })
  const costs = createCosts(report)
  const pool = createProviderPool({
    kinds,
    provider: { http, clock: wall, world },
    onReceipt: (name, receipt) => onReceipt(name, costs.withPrice(name, receipt)),
    onConnection: (name, state) => dispatcher.recordConnection(name, state),
    onRemoved: (name) => onCircuitChange(name, undefined),
  })
  const messages = createMessageRenderer(templates)
  let routing = createRouting([])
  let localProviders = new Set<string>()

  const dispatcher = createDispatcher({
    pool,
    clock,
    messages,
    report,
    onCircuitChange,
    onProviderTried: needs.onProviderTried,
    dispatchMs: needs.dispatchMs,
    timers: world.timers,
    costs,
    plan: (job) => routing.plan(job),
    callbackUrl: (name) => callbackUrl({ name, isLocal: localProviders.has(name) }),
  })

  const choosing: Choosing | undefined = needs.choose && {
    choose: needs.choose,
    describe: (name, { phone, country }) => ({
      price: pool.find(name)?.findPrice(phone, country) ?? null,
      isOpen: pool.find(name)?.breaker.openState(clock.now()) !== undefined,
    }),
  }

  async function configure({ providers, routes, currency }: DeliverySettings): Promise<void> {
    costs.configure(currency)
    localProviders = new Set(providers.filter(({ values }) => isLocal(values)).map(({ name }) => name))
    const poolUpdated = pool.configure(providers)
    const handles = providers.flatMap(({ name }) => pool.find(name) ?? [])
    const defaults = defaultRoutes(handles.map(({ name, channels }) => ({ name, channels })))
    for (const { channel, providers: routeProviders } of routes) {
      const incapable = handles.filter(
        ({ name, channels }) => routeProviders.includes(name) && !channels.includes(channel),
      )
      for (const { name } of incapable) {
        report('warn', 'a route names a provider that is not set up for its channel', {
          provider: name,
          channel,
        })
      }
    }
    routing = createRouting(routes.length > 0 ? routes : defaults, choosing)
    await poolUpdated
  }

  const reporter = createReporter({ pool, clock, timers: world.timers, report, costs })

  const delivery: Delivery = {
    routesFor: (destination) => routing.routesFor(destination),
    dispatch: dispatcher.dispatch,
    estimatePrice(destination, channels, excluded = []) {
      const candidates = routing.routesFor(destination).candidatesFor(channels)
      const first = candidates.find((candidate) => !excluded.includes(candidateKey(candidate)))
      const handle = first && pool.find(first.provider)
      return handle?.findPrice(destination.phone, destination.country) ?? null
    },
    render: messages.render,
    chooseText: chooseTemplateText,
    takesReports: reporter.takesReports,
    report: reporter.report,
    findPrice: reporter.findPrice,
  }

  return {
    delivery,

    /**
     * Replaces providers and routes. The settings must have been validated; messages in flight keep their
     * provider.
     */
    configure,

    /** Lists the providers in use, in the order of the configuration. */
    listProviders: () =>
      pool.list().map(({ name, kind: { kind, title }, channels }) => ({ name, kind, title, channels })),

    /** Finds the route of live messages to any number of a country, with its providers as they are now. */
    findCountryRoute(channel: Channel, country: string) {
      const phone = isSupportedCountry(country) ? `+${getCountryCallingCode(country)}` : ''
      const destination = toDestination({ environment: 'live', phone, country, appId: '' })
      const route = routing.routeFor(destination, channel)
      if (!route || !choosing || route.providers.includes(inboxProvider)) return undefined
      const { strategy = 'order' } = route
      const candidates = route.providers.map((provider) => ({
        provider,
        ...choosing.describe(provider, destination),
        wasTried: false,
      }))
      return { strategy, candidates }
    },

    /** Currency of all prices; undefined if costs are not counted. */
    currency: costs.currency,

    /** Lists the newest messages of a developer that the provider did not accept, newest first. */
    listRefusals: (name: string, developerId: string) => pool.find(name)?.refusals.list(developerId) ?? [],

    /** Lets the next message probe a provider that was failing when the server ended, instead of five fail first. */
    resumeCircuit(name: string, failure: FailureClass): void {
      const before: Failure = { class: failure, permanent: false, at: 'account', providerCode: null }
      pool.find(name)?.breaker.open(before, clock.now())
    },

    /** Lists the providers in use, with whether their circuits are open. */
    listCircuits: () =>
      pool
        .list()
        .map(({ name, breaker }) => ({ name, isOpen: breaker.openState(clock.now()) !== undefined })),

    /**
     * Reads a request to a provider's callback URL; undefined if there is no such provider or it takes no
     * callbacks.
     */
    async readCallback(name: string, callback: Callback): Promise<ReadCallback | undefined> {
      const result = await pool.find(name)?.provider.readCallback?.(callback, wall.now())
      if (result?.kind !== 'receipts') return result
      return { kind: 'receipts', receipts: result.receipts.map((one) => costs.withPrice(name, one)) }
    },

    /** Graceful shutdown. @param withinMs time for messages in flight */
    async close(withinMs: number): Promise<void> {
      reporter.close()
      await dispatcher.stop(withinMs)
      await pool.close()
      http.close()
    },
  }
}

/**
 * Whether a setting names a loopback address. Such a provider runs on this machine and can reach a loopback
 * callback URL.
 */
const isLocal = (values: Readonly<Record<string, string>>) =>
  Object.values(values).some((value) => isLoopbackAddress(value))
