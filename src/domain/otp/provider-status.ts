import type { FailureClass } from '../model/delivery.ts'
import type { Channel } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** A provider that is in use, without its settings. */
export type ActiveProvider = { name: string; kind: string; title: string; channels: readonly Channel[] }

export type ProviderStatus = ActiveProvider & {
  /** Open circuit of the node that will retry last; null while every node sends through the provider. */
  openCircuit: { failure: FailureClass; openUntil: number } | null
}

export type ProviderStatusService = ReturnType<typeof createProviderStatusService>

/** Creates the service that shows the providers and their circuits to developers. */
export function createProviderStatusService(needs: {
  store: Store<'providerCircuits'>
  clock: Clock
  /** Lists the providers of this node, in the order of the configuration. */
  listProviders(): readonly ActiveProvider[]
}) {
  return {
    async list(): Promise<ProviderStatus[]> {
      const now = needs.clock.now()
      const circuits = await needs.store.read.providerCircuits.list()
      return needs.listProviders().map((provider) => {
        const [openCircuit = null] = circuits
          .filter(({ name, openUntil }) => name === provider.name && openUntil > now)
          .toSorted((a, b) => b.openUntil - a.openUntil)
          .map(({ failure, openUntil }) => ({ failure, openUntil }))
        return { ...provider, openCircuit }
      })
    },
  }
}
