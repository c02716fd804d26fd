import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import { nodeLeaseMs } from '../domain/upkeep/leadership.ts'
import { secondMs } from '../shared/durations.ts'
import type { Timers } from '../world/world.ts'

/** A database that does not answer in this time is not ready: load balancers seldom wait longer. */
const probeMaxMs = secondMs

/**
 * Checks readiness with a real database write, at most once per second; probes in between share the result. It renews the
 * lease of the node, so that nodes do not wait for each other's row. After a write that found the disk full, it also needs
 * new pages: that lease is written again and again in the room that it has.
 *
 * @param disk see `Storage`
 */
export function createReadiness(
  store: Store<'leases'>,
  { clock, node, timers }: { clock: Clock; node: string; timers: Timers },
  {
    isDraining,
    lacksCertificate,
    disk,
  }: { isDraining: () => boolean; lacksCertificate: () => boolean; disk: { isFull: boolean } },
) {
  let startedAt = -Infinity
  /** A write that does not end must not be followed by more. */
  let isUnderWay = false
  let result = Promise.resolve<'ready' | 'database'>('ready')

  async function probe(): Promise<'ready' | 'database'> {
    isUnderWay = true
    try {
      // Changes a row: a statement that changes nothing would succeed on a full disk.
      await store.write((tx) => tx.leases.renewNode(node, nodeLeaseMs), { isUrgent: true })
      if (disk.isFull) {
        await store.write((tx) => tx.leases.takePages(node), { isUrgent: true })
        disk.isFull = false
      }
      return 'ready'
    } catch {
      return 'database'
    } finally {
      isUnderWay = false
    }
  }

  return async () => {
    if (isDraining()) return 'draining' as const
    if (lacksCertificate()) return 'certificate' as const
    if (!isUnderWay && clock.now() - startedAt >= secondMs) {
      startedAt = clock.now()
      result = settleWithin(probe(), probeMaxMs, timers)
    }
    const state = await result
    return state === 'database' && disk.isFull ? ('disk' as const) : state
  }
}

/** @returns `database` if the promise takes longer */
function settleWithin<T>(promise: Promise<T>, maxMs: number, timers: Timers): Promise<T | 'database'> {
  const late = Promise.withResolvers<'database'>()
  const timer = timers.setTimeout(() => late.resolve('database'), maxMs)
  return Promise.race([promise, late.promise]).finally(() => timers.clearTimeout(timer))
}
