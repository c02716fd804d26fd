import { dns } from 'bun'

/** An IP address that a host name resolves to. */
export type ResolvedAddress = { address: string; family: number }

/** Resolves a host name to all its addresses; rejects if there are none. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>

/**
 * Asks the name servers and the hosts file of the system. Not by libc, whose look-ups take a thread each: with eight names
 * that never resolve, all others in the process wait ten seconds, those of other developers' webhooks and of providers too.
 */
const lookupByCares: Resolve = (host) => dns.lookup(host, { backend: 'c-ares' })

/**
 * The system's resolver with a timeout. A lookup cannot be canceled, so on timeout the caller stops waiting
 * while the lookup continues. Lookups are single-flight per name, so that a name that never resolves cannot
 * pile them up. Addresses are kept for `keepMs`, because a lookup costs more than a webhook over a kept-alive
 * connection; failures are not.
 */
export function createResolver(timeoutMs = 3_000, lookupAll = lookupByCares, keepMs = 5_000): Resolve {
  const inFlight = new Map<string, Promise<ResolvedAddress[]>>()
  /** By name, the oldest first. */
  const kept = new Map<string, { addresses: ResolvedAddress[]; until: number }>()

  function keep(host: string, addresses: ResolvedAddress[]) {
    kept.delete(host)
    kept.set(host, { addresses, until: performance.now() + keepMs })
    const [oldest] = kept.keys()
    if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest)
  }

  const lookupOnce = (host: string) => {
    let pending = inFlight.get(host)
    if (!pending) {
      if (inFlight.size >= inFlightMax) return Promise.reject(new Error('too many names are being resolved'))
      pending = lookupAll(host).finally(() => inFlight.delete(host))
      inFlight.set(host, pending)
    }
    return pending
  }

  return async (host) => {
    const found = kept.get(host)
    if (found && performance.now() < found.until) return found.addresses
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('the name was not resolved in time')), timeoutMs)
    try {
      const addresses = await Promise.race([lookupOnce(host), promise])
      keep(host, addresses)
      return addresses
    } finally {
      clearTimeout(timer)
    }
  }
}

/** More than the places of several developers: a look-up that fails lasts five seconds, longer than its place. */
const inFlightMax = 1_000
const keptMax = 1_000
