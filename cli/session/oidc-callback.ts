import { CliError, exitCodes } from '../terminal/errors.ts'
import { isRecord } from './profile.ts'

export type CallbackListener = ReturnType<typeof listenForCallback>

/**
 * Waits on 127.0.0.1 for the one request with which a browser comes back from the provider (RFC 8252 §7.3). Any other
 * request, of a stale page or another program, is turned away and ends nothing.
 *
 * @param port 0 is any free one
 * @param state what only the login that is under way knows (RFC 6749 §10.12)
 */
export function listenForCallback(port: number, state: string) {
  const callbackUrl = Promise.withResolvers<URL>()
  const outcome = Promise.withResolvers<boolean>()
  let isUsed = false

  async function handleRequest(request: Request): Promise<Response> {
    const url = new URL(request.url)
    if (request.method !== 'GET' || url.pathname !== '/callback')
      return htmlPage(404, 'There is nothing here.')
    if (isUsed || url.searchParams.get('state') !== state)
      return htmlPage(400, 'No login waits for this page.', 'Start again in the terminal: otpd login')
    isUsed = true
    callbackUrl.resolve(url)
    return (await outcome.promise)
      ? htmlPage(200, 'You are logged in.', 'Close this page and go on in the terminal.')
      : htmlPage(400, 'The login did not work.', 'The terminal says why. Close this page and go on there.')
  }

  const server = listen(port, handleRequest)
  return {
    redirectUri: `http://127.0.0.1:${server.port}/callback`,
    callbackUrl: callbackUrl.promise,
    /** Shows the person how it ended, then listens no more. */
    async close(isLoggedIn: boolean) {
      outcome.resolve(isLoggedIn)
      await server.stop()
    },
  }
}

function listen(port: number, handleRequest: (request: Request) => Promise<Response>) {
  try {
    return Bun.serve({ hostname: '127.0.0.1', port, idleTimeout: 0, reusePort: false, fetch: handleRequest })
  } catch (error) {
    if (!isRecord(error) || error.code !== 'EADDRINUSE') throw error
    throw new CliError(exitCodes.usage, 'PORT_TAKEN', `Port ${port} of this machine is taken.`, {
      hints: ['Name another one that the provider knows: --callback-port, or use --device.'],
      cause: error,
    })
  }
}

/** The address of this page holds a code: it goes to nobody, and nothing is loaded. */
function htmlPage(status: number, title: string, text = '') {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body{font:1.1rem/1.6 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1.5rem}</style>
<h1>${title}</h1><p>${text}</p></html>`
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    },
  })
}
