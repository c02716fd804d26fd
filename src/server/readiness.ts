import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'

/** Checks readiness with a real database write, at most once per second; probes in between share the result. */
export function createReadiness(store: Store<'readiness'>, clock: Clock, isDraining: () => boolean) {
  let checkedAt = -Infinity
  let result = Promise.resolve(true)
  return async () => {
    if (isDraining()) return 'draining' as const
    if (clock.now() - checkedAt >= 1000) {
      checkedAt = clock.now()
      // Changes a value: a statement that changes nothing would succeed on a full disk.
      result = store
        .write((tx) => tx.readiness.probe(checkedAt))
        .then(
          () => true,
          () => false,
        )
    }
    return (await result) ? ('ready' as const) : ('database' as const)
  }
}
