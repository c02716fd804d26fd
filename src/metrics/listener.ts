/**
 * Serves `/metrics` on an address of its own, so that no proxy in front of the API shows it to the world.
 *
 * @param metrics.render may fail: the scrape is then answered 500, without a cause
 * @throws what Bun throws where the address is taken or not ours
 */
export function serveMetrics(
  address: { host: string; port: number },
  metrics: { contentType: string; render(): Promise<string> },
  onError: (error: unknown) => void,
): { url: string; stop(): Promise<void> } {
  const server = Bun.serve({
    hostname: address.host,
    port: address.port,
    reusePort: false,
    development: false,
    async fetch(request) {
      // None where the Host header is no name of a host.
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
