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
  ask: Resolve = (host) => lookup(host, { all: true }),
): Resolve {
  const running = new Map<string, Promise<ResolvedAddress[]>>()

  const askOnce = (host: string) => {
    let answer = running.get(host)
    if (!answer) {
      if (running.size >= runningMax) return Promise.reject(new Error('too many names are being resolved'))
      answer = ask(host).finally(() => running.delete(host))
      running.set(host, answer)
    }
    return answer
  }

  return async (host) => {
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('the name was not resolved in time')), timeoutMs)
    try {
      return await Promise.race([askOnce(host), promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

const runningMax = 100
