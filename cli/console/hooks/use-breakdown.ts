import type { BreakdownRow } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { usePolled, type Polled } from './use-polled.ts'
import { useOnlyEnvironment } from './use-shell.ts'

export type BreakdownKey = 'application' | 'country' | 'channel' | 'provider'

/** Counts change slowly enough that this is a fifth of the calls of other lists. */
const intervalMs = 10_000

/** Polls the counts of the last days by application, country, channel or provider. */
export function useBreakdown(
  by: BreakdownKey,
  range: '7d' | '30d' | '90d',
  isActive = true,
): Polled<BreakdownRow[]> {
  const { api } = useConsole()
  const environment = useOnlyEnvironment()
  return usePolled(
    `breakdown ${by} ${range} ${environment}`,
    async () =>
      (await api.asDeveloper('GET', '/v1/analytics/breakdown', { query: { by, range, environment } })).data,
    { intervalMs, isActive },
  )
}
