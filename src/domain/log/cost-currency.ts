import type { Clock } from '../model/clock.ts'
import type { Store } from '../store/store.ts'
import { utcDay } from '../../shared/durations.ts'

/**
 * Makes the currency of new costs that of the configuration; undefined counts none. The day on which it changes has costs in
 * both, and the days before in the old one: none of these is summed up any more.
 */
export async function useCostCurrency(
  { store, clock }: { store: Store<'analytics'>; clock: Clock },
  currency: string | undefined,
): Promise<void> {
  const current = await store.read.analytics.costCurrency()
  if (currency === undefined || current?.currency === currency) return
  const since = current ? utcDay(clock.now()) + 1 : 0
  await store.write((tx) => tx.analytics.setCostCurrency({ currency, since }))
}
