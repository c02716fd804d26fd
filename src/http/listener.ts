import type { AnyElysia } from 'elysia'
import { invalidField, ServiceError } from '../domain/model/errors.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { CertificatePair } from '../tls/pair.ts'
import { createErrorResponder, securityHeaders } from './app.ts'
import type { PresentError } from './compat/facades.ts'
import { internalMessage } from './errors.ts'
import { createTurnLimit } from '../world/event-loop-turns.ts'
import { judgePath, rawPathRoutes } from './urls.ts'
import { observeRequests, type CompletedRequest } from './request-log.ts'
import { routeNotFound } from './route-errors.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/** A request as Bun routes it: `params` has the segments of the path, unless no route of `rawPathRoutes` matched. */
type IncomingRequest = Request & { params?: Readonly<Record<string, string>> }

export type Listener = {
  url: string
  /**
   * Serves the certificate to connections from now on; with TLS only. Requests and streams in progress end on the old one.
   *
   * @throws Error the pair cannot be used; the old one stays
   */
  exchange(pair: CertificatePair): void
  /**
   * Begins a graceful shutdown: requests are still served, but each response closes its connection, so that clients
   * with keep-alive do not send their next request into a closed one. Resolves when no request is in flight and none
   * arrived for a moment, or after one second; that second begins after `waitMs`.
   */
  beginDrain(waitMs: number): Promise<void>
  /** Stops accepting connections, finishes requests in flight, and aborts the rest after `timeoutMs`. */
  stop(timeoutMs: number): Promise<void>
}

export type ListenerNeeds = {
  /** The system's by default. */
  world?: World | undefined
  newId: NewId
  /** Called with errors that the application should have caught. */
  onBug(error: unknown, traceId: string): void
  /** Called for every request before anything is read for it. */
  onArrival?: (() => void) | undefined
  /** Called for every completed request; omitting it costs nothing. */
  onResponse?: ((completed: CompletedRequest) => void) | undefined
  /** Form of the errors of requests that do not reach the application; that of the API by default. */
  presentError?: PresentError | undefined
  /** Serves HTTPS. Without a certificate the port is only checked, and opens with the first `exchange`. */
  tls?: { pair: CertificatePair | null; hstsSeconds: number } | undefined
}

/**
 * Unlimited, because Bun responds to a larger body without an error body. The application enforces its own limit while
 * it reads, and unread bytes are not buffered.
 */
const requestBytesMax = Number.MAX_SAFE_INTEGER
/** Longer than the slowest response: Bun closes a connection that is idle for so long, even while a handler works. */
const idleSeconds = 30
const idleTurnsMin = 5
const idleTurnMs = 10
const drainMsMax = 1000
/**
 * For so long after an exchange each response on the old certificate closes its connection. Without it, clients with
 * keep-alive would send their next request into a connection that is being closed.
 */
const exchangeMs = 2000
/** Elsewhere the second server might not share the port with the first one. */
const canSharePort = process.platform === 'linux'

/**
 * Serves an application over HTTP.
 *
 * @param address.port 0 chooses any free port
 * @throws Bun's error when the address is in use or not available
 */
export function listen(
  address: { host: string; port: number },
  app: AnyElysia,
  needs: ListenerNeeds,
): Listener {
  const { newId, onBug, onArrival, onResponse, tls, world = systemWorld } = needs
  const { monotonic, timers } = world
  const handle = app.compile().fetch
  const toResponse = createErrorResponder(needs)
  /** Bun's request for each rewritten one. */
  const originalRequests = new WeakMap<Request, Request>()
  const respond = (request: IncomingRequest) => {
    const { url, headers } = request
    const start = findPath(url, headers.get('host'))
    if (start === undefined) return toResponse(invalidHost(), /^\w+:\/\/[^/]*([^?]*)/.exec(url)?.[1] ?? url)
    const queryStart = url.indexOf('?', start)
    const path = url.slice(start, queryStart === -1 ? undefined : queryStart)
    // RFC 9110 §10.1.1; Bun itself answers `100-continue`.
    const expectation = headers.get('expect')
    if (expectation !== null && !/^(100-continue)?$/i.test(expectation))
      return toResponse(expectationFailed(), path)
    const verdict = judgePath(request.method, path, request.params)
    if (verdict === 'not_found') return toResponse(routeNotFound(), path)
    if (verdict === 'redirect') return redirect(path.slice(0, -1) + url.slice(start + path.length))
    if (start >= routerStart) return handle(request)
    const rewritten = new Request(`http://localhost${url.slice(start)}`, request)
    originalRequests.set(rewritten, request)
    return handle(rewritten)
  }
  const redirect = (location: string) =>
    new Response(null, {
      status: 308,
      headers: { ...securityHeaders, 'x-request-id': newId('req'), location },
    })
  const waitForTurn = createTurnLimit(world)
  let isDraining = false
  let isStopped = false
  let requestCount = 0
  let inFlight = 0
  const servers = new Set<Bun.Server<undefined>>()
  const port = tls ? reservePort(address, world) : address.port

  /** Opens a server. The application asks the newest one for addresses of clients, also of those of older servers. */
  const open = (pair: CertificatePair | null) => {
    let isEnding = false
    const serve = async (request: IncomingRequest) => {
      requestCount++
      inFlight++
      try {
        await waitForTurn()
        onArrival?.()
        const response = await respond(request)
        // RFC 9112 §9.6. Bun closes the connection after the response.
        if (isDraining || isEnding) response.headers.set('connection', 'close')
        if (tls && tls.hstsSeconds > 0)
          response.headers.set('strict-transport-security', `max-age=${tls.hstsSeconds}`)
        return response
      } finally {
        inFlight--
      }
    }
    const fetch = onResponse ? observeRequests(serve, app.routes, monotonic, onResponse) : serve
    const server = world.listen({
      hostname: address.host,
      port,
      // With it, two programs could share one port: one would send a code, and the other fail to verify it. With TLS
      // `reservePort` has refused that, and the next certificate needs it.
      reusePort: pair !== null && canSharePort,
      idleTimeout: idleSeconds,
      maxRequestBodySize: requestBytesMax,
      development: false,
      ...(pair && { tls: { cert: pair.certificate, key: pair.key } }),
      routes: rawPathRoutes(fetch),
      fetch,
      error(thrown) {
        const traceId = newId('req')
        onBug(thrown, traceId)
        return toResponse(new ServiceError('INTERNAL', internalMessage), '', traceId)
      },
    })
    servers.add(server)
    app.server = serverOfRoutes(server, originalRequests)
    const end = async () => {
      await server.stop(false)
      servers.delete(server)
    }
    return {
      server,
      end,
      endSoon() {
        isEnding = true
        timers.setTimeout(() => void end(), exchangeMs).unref()
      },
    }
  }
  let current = tls?.pair === null ? undefined : open(tls?.pair ?? null)
  const host = address.host.includes(':') ? `[${address.host}]` : address.host

  return {
    url: tls ? `https://${host}:${port}` : `http://${host}:${current?.server.port}`,
    exchange(pair) {
      // A server that is opened now would never be stopped, and serve requests without a database.
      if (isStopped) return
      const old = current
      if (!canSharePort) void old?.end()
      current = open(pair)
      if (canSharePort) old?.endSoon()
    },
    async beginDrain(waitMs) {
      isDraining = true
      await timers.sleep(waitMs)
      const endsAtMs = monotonic() + drainMsMax
      // Counts turns of the event loop, not time: during a slow disk write, requests may wait unseen in the socket.
      for (let idleTurns = 0; idleTurns < idleTurnsMin && monotonic() < endsAtMs;) {
        const countBefore = requestCount
        await timers.sleep(idleTurnMs)
        idleTurns = requestCount === countBefore && inFlight === 0 ? idleTurns + 1 : 0
      }
    },
    async stop(timeoutMs) {
      isStopped = true
      const finished = Promise.all([...servers].map((server) => server.stop(false)))
      const timer = Promise.withResolvers<void>()
      const timeout = timers.setTimeout(timer.resolve, timeoutMs)
      await Promise.race([finished, timer.promise])
      timers.clearTimeout(timeout)
      await Promise.all([...servers].map((server) => server.stop(true)))
    },
  }
}

/**
 * Finds the port, and that no other program has it: servers that share their port would also share it with that one.
 *
 * @throws Bun's error when the address is in use or not available
 */
function reservePort({ host, port }: { host: string; port: number }, world: World): number {
  const probe = world.listen({ hostname: host, port, reusePort: false, fetch: () => new Response() })
  const bound = probe.port ?? port
  void probe.stop(true)
  return bound
}

/** Answers what routes ask the server about a request, also about a rewritten one, which Bun does not know. */
function serverOfRoutes(server: Bun.Server<undefined>, originalRequests: WeakMap<Request, Request>) {
  const toOriginal = (request: Request) => originalRequests.get(request) ?? request
  return {
    requestIP: (request) => server.requestIP(toOriginal(request)),
    timeout: (request, seconds) => server.timeout(toOriginal(request), seconds),
  } satisfies Partial<Bun.Server<undefined>> as unknown as Bun.Server<undefined>
}

/** Characters allowed in an authority; any other could shift the boundary between it and the path. */
const authority = /^[A-Za-z0-9._~:[\]-]+$/

/**
 * Where the framework begins to look for the path in a URL. It would route a request with a shorter authority to another
 * path, which would bypass the rules of a proxy.
 */
const routerStart = 11

/**
 * Finds where the path of the request line begins in the URL that Bun builds from host and path.
 *
 * @returns undefined if the `Host` header is invalid
 */
function findPath(url: string, host: string | null): number | undefined {
  // HTTP/1.0 without Host: Bun's URL is only the path.
  if (host === null || host === '') return url.startsWith('/') ? 0 : undefined
  // With an invalid authority, Bun does not resolve dot segments in the path.
  if (!authority.test(host) || !URL.canParse(url)) return undefined
  const start = url.indexOf('/', url.indexOf('://') + 3)
  return start === -1 ? undefined : start
}

const expectationFailed = () =>
  new ServiceError(
    'EXPECTATION_FAILED',
    'The only expectation that this server meets is 100-continue. Send the request without the header expect.',
  )

const invalidHost = () => invalidField('header', 'host', 'Expected the host name or address of this server.')
