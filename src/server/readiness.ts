import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'

/** Checks readiness with a real database write, at most once per second; probes in between share the result. */
export function createReadiness(store: Store<'rateLimits'>, clock: Clock, isDraining: () => boolean) {
  let checkedAt = -Infinity
  let result = Promise.resolve(true)
  return async () => {
    if (isDraining()) return 'draining' as const
    if (clock.now() - checkedAt >= 1000) {
      checkedAt = clock.now()
      result = store
        .write(async (tx) => {
          // Deleting a missing row alone would touch no page, and so succeed on a full disk.
          const probe = ['readiness', 'readiness'] as const
          await tx.rateLimits.insert(...probe, { at: checkedAt, seq: 0 })
          await tx.rateLimits.deleteUntil(...probe, checkedAt)
        })
        .then(
          () => true,
          () => false,
        )
    }
    return (await result) ? ('ready' as const) : ('database' as const)
  }
}
