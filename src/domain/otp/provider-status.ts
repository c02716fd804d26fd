import { isFailing } from '../../shared/failing-providers.ts'
import type { DeliveryTry, FailureClass } from '../model/delivery.ts'
import type { Channel } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'

/** A provider that is in use, without its settings. */
type ActiveProvider = { name: string; kind: string; title: string; channels: readonly Channel[] }

/** A message that a provider did not accept, or may not have accepted. */
export type ProviderRefusal = Pick<DeliveryTry, 'at' | 'channel' | 'outcome' | 'error' | 'reply'> & {
  requestId: string
}

export type ProviderStatus = ActiveProvider & {
  /** The newest messages of the developer that this node could not hand over to it, newest first. */
  recentRefusals: readonly ProviderRefusal[]
  /** Open circuit of the node that will retry last; null if no node has one. */
  openCircuit: { failure: FailureClass; openUntil: number } | null
}

export type ProviderStatusService = ReturnType<typeof createProviderStatusService>

/** Creates the service that shows the providers and their circuits to developers. */
export function createProviderStatusService(needs: {
  store: Store<'providerCircuits'>
  clock: Clock
  /** Lists the providers of this node, in the order of the configuration. */
  listProviders(): readonly ActiveProvider[]
  /** Lists the newest messages of a developer that the provider did not accept, newest first. */
  listRefusals(provider: string, developerId: string): readonly ProviderRefusal[]
}) {
  return {
    async list(developerId: string): Promise<ProviderStatus[]> {
      const now = needs.clock.now()
      const circuits = await needs.store.read.providerCircuits.list()
      return needs.listProviders().map((provider) => {
        const [openCircuit = null] = circuits
          .filter((circuit) => circuit.name === provider.name && isFailing(circuit, now))
          .toSorted((a, b) => b.openUntil - a.openUntil)
          .map(({ failure, openUntil }) => ({ failure, openUntil }))
        const recentRefusals = needs.listRefusals(provider.name, developerId)
        return { ...provider, openCircuit, recentRefusals }
      })
    },
  }
}
