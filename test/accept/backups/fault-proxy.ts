/** How the proxy treats calls. `part` faults wait for the second part of an upload. */
export type ProxyMode = 'pass' | 'slow' | 'part 500' | 'part 403' | 'part cut' | 'part hangs' | 'all 500'

/** Starts a proxy in front of an S3 server that can fail as services and networks do. */
export function startFaultProxy(target: string) {
  let mode: ProxyMode = 'pass'
  let onFault = () => {}
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search, searchParams } = new URL(request.url)
      const body = await request.arrayBuffer()
      if (mode === 'slow') await Bun.sleep(1500)
      if (mode === 'all 500') return error(500, 'InternalError')
      if (mode.startsWith('part') && searchParams.get('partNumber') === '2') {
        onFault()
        if (mode === 'part 500') return error(500, 'InternalError')
        if (mode === 'part 403') return error(403, 'AccessDenied')
        if (mode === 'part hangs') return new Promise<Response>(() => {})
        setTimeout(() => void server.stop(true), 0)
        return new Promise<Response>(() => {})
      }
      return fetch(`${target}${pathname}${search}`, {
        method: request.method,
        headers: request.headers,
        ...(body.byteLength > 0 && { body }),
      })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    set(newMode: ProxyMode, newOnFault = () => {}) {
      mode = newMode
      onFault = newOnFault
    },
    stop: () => server.stop(true),
  }
}

const error = (status: number, code: string) =>
  new Response(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`, { status })
