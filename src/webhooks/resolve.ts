import { lookup } from 'node:dns/promises'

/** An IP address that a host name resolves to. */
export type ResolvedAddress = { address: string; family: number }

/** Resolves a host name to all its addresses; rejects if there are none. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>

/**
 * The system's resolver with a timeout. A lookup cannot be canceled, so on timeout the caller stops waiting
 * while the lookup continues. Lookups are single-flight per name, so that a name that never resolves cannot
 * pile them up.
 */
export function createResolver(
  timeoutMs = 3_000,
  lookupAll: Resolve = (host) => lookup(host, { all: true }),
): Resolve {
  const inFlight = new Map<string, Promise<ResolvedAddress[]>>()

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
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('the name was not resolved in time')), timeoutMs)
    try {
      return await Promise.race([lookupOnce(host), promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

const inFlightMax = 100
