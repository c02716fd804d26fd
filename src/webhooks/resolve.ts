import { systemWorld } from '../world/system.ts'
import type { HostAddress, World } from '../world/world.ts'

/** Resolves a host name to all its addresses; rejects if there are none. */
export type Resolve = (host: string) => Promise<HostAddress[]>

/**
 * The system's resolver with a timeout. A lookup cannot be canceled, so on timeout the caller stops waiting
 * while the lookup continues. Lookups are single-flight per name, so that a name that never resolves cannot
 * pile them up. Addresses are kept for `keepMs`, because a lookup costs more than a webhook over a kept-alive
 * connection; failures are not.
 */
export function createResolver(
  timeoutMs = 3_000,
  lookupAll?: Resolve,
  keepMs = 5_000,
  world: World = systemWorld,
): Resolve {
  const { timers } = world
  const inFlight = new Map<string, Promise<HostAddress[]>>()
  /** By name, the oldest first. */
  const kept = new Map<string, { addresses: HostAddress[]; until: number }>()

  function keep(host: string, addresses: HostAddress[]) {
    kept.delete(host)
    kept.set(host, { addresses, until: world.monotonic() + keepMs })
    const [oldest] = kept.keys()
    if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest)
  }

  const lookupOnce = (host: string) => {
    let pending = inFlight.get(host)
    if (!pending) {
      if (inFlight.size >= inFlightMax) return Promise.reject(new Error('too many names are being resolved'))
      pending = (lookupAll ?? world.resolve)(host).finally(() => inFlight.delete(host))
      inFlight.set(host, pending)
    }
    return pending
  }

  return async (host) => {
    const found = kept.get(host)
    if (found && world.monotonic() < found.until) return found.addresses
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = timers.setTimeout(() => reject(new Error('the name was not resolved in time')), timeoutMs)
    try {
      const addresses = await Promise.race([lookupOnce(host), promise])
      keep(host, addresses)
      return addresses
    } finally {
      timers.clearTimeout(timer)
    }
  }
}

/** More than the places of several developers: a look-up that fails lasts five seconds, longer than its place. */
const inFlightMax = 1_000
const keptMax = 1_000
