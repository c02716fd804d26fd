import { ServiceError } from '../domain/model/errors.ts'
import type { NewId } from '../domain/model/ids.ts'
import { isSafeMethod } from './urls.ts'
import { createErrorResponder, securityHeaders } from './app.ts'
import type { PresentError } from './compat/facades.ts'
import { internalMessage } from './errors.ts'
import { createTurnLimit } from '../world/event-loop-turns.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

type HttpListenerNeeds = {
  /** The system's by default. */
  world?: World
  newId: NewId
  /** Returns the answer to a challenge of a certificate authority (RFC 8555 §8.3); undefined for an unknown token. */
  findChallenge(token: string): string | undefined
  /** Returns the origin to which requests for a host are redirected; undefined if the certificate does not cover it. */
  httpsOrigin(host: string): string | undefined
  /** Whether HTTPS is served; until then only probes are answered. */
  isReady(): boolean
  /** Answers the probes until HTTPS is served. */
  answerProbe(request: Request): Response | Promise<Response>
  /** Called with unexpected errors. */
  onBug(error: unknown, traceId: string): void
  /** Form of the errors; that of the API by default. */
  presentError?: PresentError | undefined
}

const challengePath = /^\/\.well-known\/acme-challenge\/([\w-]+)$/
const probePath = /^\/v1\/health(\/ready)?$/

/**
 * Serves plain HTTP next to HTTPS: answers challenges, and redirects GET and HEAD. Other methods are refused, since a
 * client that is redirected has already sent its secrets unencrypted, and would go on doing so unnoticed.
 *
 * @throws Bun's error when the address is in use or not available
 */
export function listenHttp(
  address: { host: string; port: number },
  needs: HttpListenerNeeds,
): { url: string; stop(): Promise<void> } {
  const { newId, onBug, world = systemWorld } = needs
  const refuse = createErrorResponder(needs)
  const waitForTurn = createTurnLimit(world)
  const respond = async (request: Request): Promise<Response> => {
    await waitForTurn()
    const { method } = request
    // Bun's URL is only the path without a Host header.
    const url = URL.parse(request.url, 'http://localhost')
    const path = url?.pathname ?? '/'
    const [, token] = challengePath.exec(path) ?? []
    const answer = token === undefined ? undefined : needs.findChallenge(token)
    if (isSafeMethod(method) && answer !== undefined)
      return new Response(answer, { headers: { ...securityHeaders, 'content-type': 'text/plain' } })
    if (!isSafeMethod(method)) return refuse(new ServiceError('FORBIDDEN', 'Use https.'), path)
    if (!needs.isReady())
      return probePath.test(path)
        ? // Rebuilt, because the framework does not find the path behind a short host: see `routerStart` of the other listener.
          needs.answerProbe(new Request(`http://localhost${path}`, { method }))
        : refuse(new ServiceError('UNAVAILABLE', 'There is no certificate yet. Try again later.'), path)
    const origin = url === null ? undefined : needs.httpsOrigin(url.hostname)
    if (url === null || origin === undefined)
      return refuse(
        new ServiceError('NOT_FOUND', 'The certificate of this server does not cover this host.'),
        path,
      )
    return new Response(null, {
      status: 308,
      headers: {
        ...securityHeaders,
        'x-request-id': newId('req'),
        location: `${origin}${path}${url.search}`,
      },
    })
  }

  const server = world.listen({
    hostname: address.host,
    port: address.port,
    reusePort: false,
    development: false,
    fetch: respond,
    error(thrown) {
      const traceId = newId('req')
      onBug(thrown, traceId)
      return refuse(new ServiceError('INTERNAL', internalMessage), '', traceId)
    },
  })
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return { url: `http://${host}:${server.port}`, stop: () => server.stop(true) }
}
