import { createFairPermits, type FairPermits } from '../domain/model/fair-permits.ts'
import type { ProviderSettings } from '../domain/model/delivery.ts'
import { createPriceFinder, type FindPrice } from '../domain/model/price.ts'
import type { Channel } from '../domain/model/request.ts'
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts'
import { withFailoverOnBlock } from './failover-on-block.ts'
import { createRecentRefusals, type RecentRefusals } from './recent-refusals.ts'
import { enabledChannels, type ProviderKind, type ProviderNeeds } from './kit/provider-kinds.ts'
import type { ConnectionState, Provider, Receipt } from './kit/provider.ts'

/** Bulkhead: a provider that hangs delays its own messages, not those of other providers. */
const inFlightPerProviderMax = 400

/** A configured provider with its circuit breaker. */
export type ProviderHandle = {
  readonly name: string
  readonly kind: ProviderKind
  readonly provider: Provider
  readonly channels: readonly Channel[]
  readonly breaker: CircuitBreaker
  /** Number of `send` calls under way. */
  inFlight: number
  /** Permits for these calls, which developers share. */
  readonly permits: FairPermits
  readonly refusals: RecentRefusals
  /** Whether it hears how the requests of its messages ended. */
  readonly feedback: boolean
  /** Finds what one of its messages costs; a reload replaces it. */
  findPrice: FindPrice
}

export type ProviderPool = ReturnType<typeof createProviderPool>

/**
 * The operator's providers. On a reload, a provider whose settings have not changed, but for its prices, keeps its
 * connections and its circuit; a removed or changed one is closed after its last message in flight.
 *
 * @param needs.onReceipt called by providers that receive delivery receipts over their own connection (SMPP)
 */
export function createProviderPool(needs: {
  kinds: readonly ProviderKind[]
  provider: Omit<ProviderNeeds, 'feedback'>
  onReceipt(name: string, receipt: Receipt): void
  /** Called when such a connection was made, and each time that it could not be. */
  onConnection(name: string, state: ConnectionState): void
  /** Called with each provider that new settings remove or replace; its circuit is gone. */
  onRemoved(name: string): void
}) {
  let handles = new Map<string, ProviderHandle & { settings: string }>()
  const retired = new Set<ProviderHandle>()

  function openProvider(
    { name, kind, values, failoverOnBlock = false, feedback = true }: ProviderSettings,
    settings: string,
  ) {
    const providerKind = needs.kinds.find((candidate) => candidate.kind === kind)
    if (!providerKind) throw new Error(`unknown provider kind ${kind}`)
    const created = providerKind.create(values, { ...needs.provider, feedback })
    const provider = failoverOnBlock ? withFailoverOnBlock(created) : created
    provider.listen?.(
      (receipt) => needs.onReceipt(name, receipt),
      (state) => needs.onConnection(name, state),
    )
    const breaker = createCircuitBreaker()
    const permits = createFairPermits(inFlightPerProviderMax, 1)
    const refusals = createRecentRefusals()
    const channels = enabledChannels(providerKind, values)
    const base = { name, kind: providerKind, provider, channels, breaker, permits, refusals, feedback }
    return { ...base, inFlight: 0, settings, findPrice: unknownPrice }
  }

  async function closeIfIdle(handle: ProviderHandle) {
    if (!retired.has(handle) || handle.inFlight > 0) return
    retired.delete(handle)
    await handle.provider.close?.()
  }

  return {
    /** Replaces the providers. The settings must have been validated. */
    async configure(providers: readonly ProviderSettings[]): Promise<void> {
      const nextHandles: typeof handles = new Map()
      for (const { prices, ...provider } of providers) {
        const serialized = JSON.stringify(provider)
        const existing = handles.get(provider.name)
        const handle = existing?.settings === serialized ? existing : openProvider(provider, serialized)
        handle.findPrice = prices ? createPriceFinder(prices) : unknownPrice
        nextHandles.set(provider.name, handle)
      }
      const removed = [...handles.values()].filter((handle) => nextHandles.get(handle.name) !== handle)
      handles = nextHandles
      for (const { name } of removed) needs.onRemoved(name)
      for (const handle of removed) {
        retired.add(handle)
        await closeIfIdle(handle)
      }
    },

    /** Lists the providers in the order of the configuration. */
    list: (): ProviderHandle[] => [...handles.values()],

    find: (name: string): ProviderHandle | undefined => handles.get(name),

    /** Runs `work` with the provider; a provider removed in the meantime is closed only after it. */
    async use<T>(handle: ProviderHandle, work: () => Promise<T>): Promise<T> {
      handle.inFlight++
      try {
        return await work()
      } finally {
        handle.inFlight--
        // A removed provider that fails to close must not replace the outcome of its last message.
        await closeIfIdle(handle).catch(() => {})
      }
    },

    /** Closes all providers. */
    async close(): Promise<void> {
      const allHandles = [...handles.values(), ...retired]
      handles = new Map()
      retired.clear()
      await Promise.allSettled(allHandles.map(({ provider }) => provider.close?.()))
    },
  }
}

const unknownPrice: FindPrice = () => null
