import type { AnyElysia } from 'elysia'

export type Listener = {
  url: string
  /** Refuses new calls, finishes those under way, and cuts what is left after `patienceMs`. */
  stop(patienceMs: number): Promise<void>
}

/** Over our own limit, so that a body which is too large gets our answer and not an empty one. */
const requestBytesMax = 1024 * 1024
/** Longer than the slowest answer: a socket that is silent for so long is cut, also while a handler works. */
const idleSeconds = 30

/**
 * Serves an application over HTTP.
 *
 * @param address.port 0: any free one
 * @throws what Bun throws where the address is taken or not ours
 */
export function listen(address: { host: string; port: number }, app: AnyElysia): Listener {
  const handle = app.compile().fetch
  const server = Bun.serve({
    hostname: address.host,
    port: address.port,
    // Two servers on one port would share the calls: a code sent by one, verified by the other.
    reusePort: false,
    idleTimeout: idleSeconds,
    maxRequestBodySize: requestBytesMax,
    development: false,
    fetch(request) {
      const plain = withPlainAuthority(request)
      return plain ? handle(plain) : new Response(null, { status: 400 })
    },
  })
  // What routes ask for the address of the caller.
  app.server = server
  const host = address.host.includes(':') ? `[${address.host}]` : address.host

  return {
    url: `http://${host}:${server.port}`,
    async stop(patienceMs) {
      const finished = server.stop(false)
      const timer = Promise.withResolvers<void>()
      const timeout = setTimeout(timer.resolve, patienceMs)
      await Promise.race([finished, timer.promise])
      clearTimeout(timeout)
      await server.stop(true)
    },
  }
}

/** What an authority may be made of; anything else could move the border between it and the path. */
const authority = /^[A-Za-z0-9._~:[\]-]+$/

/**
 * Gives the router the path of the request line, whatever the `Host` header says.
 *
 * The framework takes the path from the eleventh character of the URL on, and Bun makes the URL of host and path: a
 * short or strange authority would shift one route onto another, past the rules of a proxy in front.
 *
 * @returns undefined where the request cannot be understood
 */
export function withPlainAuthority(request: Request): Request | undefined {
  const host = request.headers.get('host')
  const { url } = request
  // HTTP/1.0 without a Host: the URL is the path.
  if (host === null || host === '') return url.startsWith('/') ? rebase(request, url) : undefined
  if (!authority.test(host)) return undefined
  const start = url.indexOf('://') + 3
  const length = url.indexOf('/', start) - start
  if (length < 0) return undefined
  return length >= 4 ? request : rebase(request, url.slice(start + length))
}

const rebase = (request: Request, path: string) => new Request(`http://localhost${path}`, request)
