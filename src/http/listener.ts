import type { AnyElysia } from 'elysia'
import { invalidField, ServiceError } from '../domain/model/errors.ts'
import type { NewId } from '../domain/model/ids.ts'
import { securityHeaders } from './app.ts'
import { toErrorResponse, internalMessage } from './errors.ts'
import { observeRequests, type CompletedRequest } from './request-log.ts'

export type Listener = {
  url: string
  /**
   * Goes on answering, and says with every answer that its connection ends. A caller that keeps a connection open would
   * otherwise send its next call into one that is closed already. Resolves once nobody has called for a moment, within a
   * second.
   */
  beginDrain(): Promise<void>
  /** Refuses new calls, finishes those under way, and cuts what is left after `patienceMs`. */
  stop(timeoutMs: number): Promise<void>
}

export type ListenerNeeds = {
  newId: NewId
  /** Told of what the application itself should have caught. */
  onBug(error: unknown, traceId: string): void
  /** Told of every call; costs nothing where it is left out. */
  onResponse?: ((completed: CompletedRequest) => void) | undefined
}

/**
 * None: Bun's own answer to a body that is too large is an empty one. The application reads no more than its own limit
 * of any body, and what nobody reads is not kept.
 */
const requestBytesMax = Number.MAX_SAFE_INTEGER
/** Longer than the slowest answer: a socket that is silent for so long is cut, also while a handler works. */
const idleSeconds = 30
const idleTurnsMin = 5
const idleTurnMs = 10
const drainMsMax = 1000

/**
 * Serves an application over HTTP.
 *
 * @param address.port 0: any free one
 * @throws what Bun throws where the address is taken or not ours
 */
export function listen(
  address: { host: string; port: number },
  app: AnyElysia,
  { newId, onBug, onResponse }: ListenerNeeds,
): Listener {
  const handle = app.compile().fetch
  const toResponse = (error: ServiceError, traceId = newId('req')) => {
    const { status, headers, body } = toErrorResponse(error, traceId)
    return Response.json(body, {
      status,
      headers: { ...securityHeaders, 'x-request-id': traceId, ...headers },
    })
  }
  /** By the request that was made of it, the one that Bun knows. */
  const originalRequests = new WeakMap<Request, Request>()
  const respond = (request: Request) => {
    const normalized = normalizeAuthority(request)
    if (!normalized) return toResponse(invalidHost())
    if (normalized !== request) originalRequests.set(normalized, request)
    return handle(normalized)
  }
  let isDraining = false
  let requestCount = 0
  let inFlight = 0
  const serve = async (request: Request) => {
    requestCount++
    inFlight++
    try {
      const response = await respond(request)
      // RFC 9112 §9.6. Bun closes the connection behind it.
      if (isDraining) response.headers.set('connection', 'close')
      return response
    } finally {
      inFlight--
    }
  }
  const server = Bun.serve({
    hostname: address.host,
    port: address.port,
    // Two servers on one port would share the calls: a code sent by one, verified by the other.
    reusePort: false,
    idleTimeout: idleSeconds,
    maxRequestBodySize: requestBytesMax,
    development: false,
    fetch: onResponse ? observeRequests(serve, app.routes, () => performance.now(), onResponse) : serve,
    error(thrown) {
      const traceId = newId('req')
      onBug(thrown, traceId)
      return toResponse(new ServiceError('INTERNAL', internalMessage), traceId)
    },
  })
  app.server = withOriginalRequests(server, originalRequests)
  const host = address.host.includes(':') ? `[${address.host}]` : address.host

  return {
    url: `http://${host}:${server.port}`,
    async beginDrain() {
      isDraining = true
      const endsAtMs = performance.now() + drainMsMax
      // Counted in turns of the event loop: one that was held up by the disk has heard of nobody, whoever called.
      for (let idleTurns = 0; idleTurns < idleTurnsMin && performance.now() < endsAtMs;) {
        const countBefore = requestCount
        await new Promise((resolve) => setTimeout(resolve, idleTurnMs))
        idleTurns = requestCount === countBefore && inFlight === 0 ? idleTurns + 1 : 0
      }
    },
    async stop(timeoutMs) {
      const finished = server.stop(false)
      const timer = Promise.withResolvers<void>()
      const timeout = setTimeout(timer.resolve, timeoutMs)
      await Promise.race([finished, timer.promise])
      clearTimeout(timeout)
      await server.stop(true)
    },
  }
}

/** What routes ask for the address of a caller, also by a request that Bun has never seen. */
const withOriginalRequests = (server: Bun.Server<undefined>, originalRequests: WeakMap<Request, Request>) =>
  new Proxy(server, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) =>
        Reflect.apply(
          member,
          target,
          args.map((value) => (value instanceof Request ? (originalRequests.get(value) ?? value) : value)),
        )
    },
  })

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
export function normalizeAuthority(request: Request): Request | undefined {
  const host = request.headers.get('host')
  const { url } = request
  // HTTP/1.0 without a Host: the URL is the path.
  if (host === null || host === '') return url.startsWith('/') ? withPath(request, url) : undefined
  // Of an authority that is none Bun leaves the path as it came, and resolves no dot segments in it.
  if (!authority.test(host) || !URL.canParse(url)) return undefined
  const start = url.indexOf('://') + 3
  const length = url.indexOf('/', start) - start
  if (length < 0) return undefined
  return length >= 4 ? request : withPath(request, url.slice(start + length))
}

const withPath = (request: Request, path: string) => new Request(`http://localhost${path}`, request)

const invalidHost = () => invalidField('header', 'host', 'Expected the host name or address of this server.')
