import { CliError, exitCodes } from '../terminal/errors.ts'
import { isRecord } from '../../src/shared/json.ts'

/**
 * Listens on 127.0.0.1 for the redirect that brings the browser back from the provider (RFC 8252 §7.3). Any other
 * request, from a stale page or another program, is rejected and does not end the login.
 *
 * @param port 0 picks a free port
 * @param state secret of this login, against forged redirects (RFC 6749 §10.12)
 * @throws CliError PORT_TAKEN
 */
export function listenForCallback(port: number, state: string) {
  const callbackUrl = Promise.withResolvers<URL>()
  const outcome = Promise.withResolvers<boolean>()
  let isUsed = false

  async function handleRequest(request: Request): Promise<Response> {
    const url = new URL(request.url)
    if (request.method !== 'GET' || url.pathname !== '/callback') return htmlPage(404, 'Page not found.')
    if (isUsed || url.searchParams.get('state') !== state)
      return htmlPage(400, 'No login is waiting for this page.', 'Start again in the terminal: otpd login')
    isUsed = true
    callbackUrl.resolve(url)
    return (await outcome.promise)
      ? htmlPage(200, 'You are logged in.', 'Close this page and return to the terminal.')
      : htmlPage(400, 'The login failed.', 'The terminal says why. Close this page and continue there.')
  }

  const server = listen(port, handleRequest)
  return {
    redirectUri: `http://127.0.0.1:${server.port}/callback`,
    callbackUrl: callbackUrl.promise,
    /** Shows the outcome in the browser, then stops listening. */
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
    throw new CliError(exitCodes.usage, 'PORT_TAKEN', `Port ${port} on this machine is already in use.`, {
      hints: ['Choose another port that the provider allows with --callback-port, or use --device.'],
      cause: error,
    })
  }
}

/** Renders a result page. Its URL holds an authorization code, so it loads nothing and sends no referrer. */
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
