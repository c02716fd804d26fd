export type RecordingProxy = ReturnType<typeof startRecordingProxy>

/** Starts a proxy in front of a server that records the response bodies. */
export function startRecordingProxy(target: string) {
  const bodies: string[] = []
  let onStream = () => {}
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const headers = new Headers(request.headers)
      headers.delete('host')
      const response = await fetch(target + pathname + search, {
        method: request.method,
        headers,
        ...(request.body !== null && { body: await request.arrayBuffer() }),
        redirect: 'manual',
      })
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      if (isStream) onStream()
      if (isStream) return new Response(response.body, response)
      const body = await response.text()
      bodies.push(body)
      const responseHeaders = new Headers(response.headers)
      for (const name of ['content-encoding', 'content-length', 'transfer-encoding'])
        responseHeaders.delete(name)
      return new Response(body, { status: response.status, headers: responseHeaders })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    bodies,
    /** Resolves once the server has started to send a stream. */
    waitForStream: () => new Promise<void>((resolve) => (onStream = resolve)),
    stop: () => server.stop(true),
  }
}
