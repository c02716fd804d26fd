import type { Range } from '../lines/overview.ts'
import { useResource } from './use-resource.ts'
import { useOnlyEnvironment } from './use-shell.ts'

/** Counts change slowly enough that this is a fifth of the calls of other lists. */
const intervalMs = 10_000

/** Polls the counts of the last days by application, country or provider. */
export function useBreakdown(by: 'application' | 'country' | 'provider', range: Range) {
  const environment = useOnlyEnvironment()
  const query = { by, range, environment }
  return useResource('/v1/analytics/breakdown', { query }, { intervalMs })
}
