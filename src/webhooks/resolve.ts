import { lookup } from 'node:dns/promises'

/** An address that a name stands for. */
export type ResolvedAddress = { address: string; family: number }

/** All addresses of a name; rejects where there is none. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>

/**
 * The system's resolver, with a limit: it cannot be interrupted, so that the caller stops waiting instead. A name is
 * asked for once at a time, as otherwise one that never answers would gather lookups without end.
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
