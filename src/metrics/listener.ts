import { createTurnLimit } from '../world/event-loop-turns.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/**
 * Serves `/metrics` on a separate address, so that a proxy in front of the API cannot expose it publicly.
 *
 * @param metrics.render may reject; the scrape is then answered with 500, without the cause
 * @throws Bun's error when the address is in use or cannot be bound
 */
export function serveMetrics(
  address: { host: string; port: number },
  metrics: { contentType: string; render(): Promise<string> },
  onError: (error: unknown) => void,
  world: World = systemWorld,
): { url: string; stop(): Promise<void> } {
  const waitForTurn = createTurnLimit(world)
  const server = world.listen({
    hostname: address.host,
    port: address.port,
    reusePort: false,
    development: false,
    async fetch(request) {
      await waitForTurn()
      // Undefined if the Host header is not a valid host name.
      if (URL.parse(request.url)?.pathname !== '/metrics') return new Response('Not found\n', { status: 404 })
      if (!['GET', 'HEAD'].includes(request.method))
        return new Response(null, { status: 405, headers: { allow: 'GET, HEAD' } })
      return new Response(await metrics.render(), { headers: { 'content-type': metrics.contentType } })
    },
    error(thrownError) {
      onError(thrownError)
      return new Response('Internal error\n', { status: 500 })
    },
  })
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return { url: `http://${host}:${server.port}/metrics`, stop: () => server.stop(true) }
}
