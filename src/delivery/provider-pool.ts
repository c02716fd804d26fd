import type { ProviderSettings, Receipt } from '../domain/model/delivery.ts'
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts'
import type { ProviderKind, ProviderNeeds } from './kit/provider-kinds.ts'
import type { Provider } from './kit/provider.ts'

/** A provider at work, and how it fares. */
export type ProviderHandle = {
  readonly name: string
  readonly provider: Provider
  readonly breaker: CircuitBreaker
  /** Messages that it is being offered. */
  inFlight: number
}

export type ProviderPool = ReturnType<typeof createProviderPool>

/**
 * The operator's providers. New settings may come at any time: a provider whose own have not changed stays as it is,
 * with its connections; one that is gone ends with the last message that it is being offered.
 *
 * @param needs.onReceipt told by providers that have a connection of their own for it
 */
export function createProviderPool(needs: {
  kinds: readonly ProviderKind[]
  provider: ProviderNeeds
  onReceipt(name: string, receipt: Receipt): void
}) {
  let handles = new Map<string, ProviderHandle & { settings: string }>()
  const retired = new Set<ProviderHandle>()

  function openProvider({ name, kind, values }: ProviderSettings, settings: string) {
    const providerKind = needs.kinds.find((candidate) => candidate.kind === kind)
    if (!providerKind) throw new Error(`there is no kind of provider ${kind}`)
    const provider = providerKind.create(values, needs.provider)
    provider.listen?.((receipt) => needs.onReceipt(name, receipt))
    return { name, provider, breaker: createCircuitBreaker(), inFlight: 0, settings }
  }

  async function closeIfIdle(handle: ProviderHandle) {
    if (!retired.has(handle) || handle.inFlight > 0) return
    retired.delete(handle)
    await handle.provider.close?.()
  }

  return {
    /** Takes checked settings. */
    async configure(providers: readonly ProviderSettings[]): Promise<void> {
      const nextHandles: typeof handles = new Map()
      for (const provider of providers) {
        const serialized = JSON.stringify(provider)
        const existing = handles.get(provider.name)
        nextHandles.set(
          provider.name,
          existing?.settings === serialized ? existing : openProvider(provider, serialized),
        )
      }
      const removed = [...handles.values()].filter((handle) => nextHandles.get(handle.name) !== handle)
      handles = nextHandles
      for (const handle of removed) {
        retired.add(handle)
        await closeIfIdle(handle)
      }
    },

    find: (name: string): ProviderHandle | undefined => handles.get(name),

    /** Keeps a provider from being closed under somebody's hands. */
    async use<T>(handle: ProviderHandle, work: () => Promise<T>): Promise<T> {
      handle.inFlight++
      try {
        return await work()
      } finally {
        handle.inFlight--
        await closeIfIdle(handle)
      }
    },

    async close(): Promise<void> {
      const allHandles = [...handles.values(), ...retired]
      handles = new Map()
      retired.clear()
      await Promise.allSettled(allHandles.map(({ provider }) => provider.close?.()))
    },
  }
}
