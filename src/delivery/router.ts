import {
  destinationOf,
  type Delivery,
  type DeliverySettings,
  type Receipt,
} from '../domain/model/delivery.ts'
import type { MessageTemplates } from '../domain/model/message-settings.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Rest } from './circuit-breaker.ts'
import { createCarrier, type Report } from './dispatcher.ts'
import { createFleet } from './provider-pool.ts'
import { createProviderHttp } from './kit/http-client.ts'
import { providerKinds } from './providers/kinds-list.ts'
import type { ProviderKind } from './kit/kinds.ts'
import type { Callback, CallbackResult } from './kit/provider.ts'
import { createRouting, usualRoutes } from './routes.ts'
import { createMessages } from './text/templates.ts'

export type RouterNeeds = {
  clock: Clock
  /** What providers' clocks show, for signatures and dates; the same clock if left out. */
  wall?: Clock | undefined
  /** Of otpd; providers are told. */
  version: string
  templates?: MessageTemplates
  kinds?: readonly ProviderKind[]
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
  attemptMs?: number | undefined
  callbackUrl(provider: { name: string; isLocal: boolean }): string | null
  report: Report
  onCarried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  /** Told by providers that have a connection of their own for receipts. */
  onReceipt(provider: string, receipt: Receipt): void
  onRest(provider: string, rest: Rest | undefined): void
}

export type Router = ReturnType<typeof createRouter>

/** The providers and the routes to them, as the operator's settings have them at the moment. Begins with none. */
export function createRouter(needs: RouterNeeds) {
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
    onRest,
  } = needs
  const http = createProviderHttp({ version, ...(ca !== undefined && { ca }) })
  const fleet = createFleet({ kinds, provider: { http, clock: wall }, onReceipt })
  const messages = createMessages(templates)
  let routing = createRouting([])
  let local = new Set<string>()

  const carrier = createCarrier({
    fleet,
    clock,
    messages,
    report,
    onRest,
    onCarried: needs.onCarried,
    attemptMs: needs.attemptMs,
    waysOf: ({ request, channels }) => routing.waysTo(destinationOf(request), channels),
    callbackUrl: (name) => callbackUrl({ name, isLocal: local.has(name) }),
  })

  async function apply({ providers, routes }: DeliverySettings): Promise<void> {
    local = new Set(providers.filter(({ values }) => isLocal(values)).map(({ name }) => name))
    const swapped = fleet.apply(providers)
    const posts = providers.flatMap(({ name }) => fleet.find(name) ?? [])
    const usual = usualRoutes(posts.map(({ name, provider }) => ({ name, channels: provider.channels })))
    for (const { channel, providers: wanted } of routes) {
      const unable = posts.filter(
        ({ name, provider }) => wanted.includes(name) && !provider.channels.includes(channel),
      )
      for (const { name } of unable) {
        report('warn', 'a route names a provider whose settings lack what its channel needs', {
          provider: name,
          channel,
        })
      }
    }
    routing = createRouting(routes.length > 0 ? routes : usual)
    await swapped
  }

  const delivery: Delivery = {
    channelsTo: (destination) => routing.channelsTo(destination),
    waysTo: (destination, channels) => routing.waysTo(destination, channels),
    carry: carrier.carry,
    render: messages.render,
  }

  return {
    delivery,

    /** Takes new settings, which have been checked; what is under way ends as it began. */
    apply,

    /** Reads what a provider posted to its callback URL; undefined where this one posts nothing. */
    async readCallback(name: string, callback: Callback): Promise<CallbackResult | undefined> {
      return fleet.find(name)?.provider.readCallback?.(callback, wall.now())
    },

    /** @param withinMs for what is under way */
    async close(withinMs: number): Promise<void> {
      await carrier.stop(withinMs)
      await fleet.close()
      http.close()
    },
  }
}

/** A gateway on this machine reaches addresses of this machine. */
const isLocal = (values: Readonly<Record<string, string>>) =>
  Object.values(values).some((value) =>
    /^(?:https?:\/\/)?(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?:[:/]|$)/i.test(value),
  )
