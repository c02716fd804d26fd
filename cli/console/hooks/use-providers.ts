import type { ProviderState } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { usePolled, type Polled } from './use-polled.ts'

/** Polls the operator's providers and their circuits. */
export function useProviders(isActive = true): Polled<ProviderState[]> {
  const { api } = useConsole()
  return usePolled('providers', async () => (await api.asDeveloper('GET', '/v1/providers')).data, {
    intervalMs: 5000,
    isActive,
  })
}
