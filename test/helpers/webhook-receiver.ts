import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type ReceivedWebhook = { path: string; headers: Record<string, string>; body: string }

export type WebhookReceiver = Awaited<ReturnType<typeof startReceiver>>

/**
 * Starts a webhook receiver on a free port.
 *
 * @param respond answers a webhook; by default 200 with the body `ok`
 */
export async function startReceiver(
  respond: (received: ReceivedWebhook) => Response | Promise<Response> = () => new Response('ok'),
  options: { hostname?: string; tls?: { key: string; cert: string } } = {},
) {
  const received: ReceivedWebhook[] = []
  let waiters: Array<{ count: number; resolve(): void }> = []
  const server = Bun.serve({
    hostname: options.hostname ?? '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    ...(options.tls && { tls: options.tls }),
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const webhook = {
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      }
      received.push(webhook)
      for (const { count, resolve } of waiters) if (received.length >= count) resolve()
      waiters = waiters.filter(({ count }) => received.length < count)
      return respond(webhook)
    },
  })

  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${server.port}`,
    port: server.port ?? 0,
    received,
    /** Resolves once this many webhooks have arrived. */
    waitForCount(count: number): Promise<void> {
      if (received.length >= count) return Promise.resolve()
      return new Promise((resolve) => waiters.push({ count, resolve }))
    },
    stop: () => server.stop(true),
  }
}

/** Creates a promise that a test resolves by calling `open`. */
export function createGate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

export const hasOpenssl = Bun.which('openssl') !== null
if (!hasOpenssl) process.stderr.write('Skipped: tests of webhooks over TLS. Install openssl to run them.\n')

/** Creates a key and a self-signed certificate for a name. A client that trusts `cert` trusts the server. */
export function makeCertificate(name: string, days = 2): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-tls-'))
  try {
    const options = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days ${days}`
    const subjectArgs = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
    const result = Bun.spawnSync(['openssl', ...options.split(' '), ...subjectArgs], { cwd: folder })
    if (!result.success) throw new Error(`openssl: ${result.stderr.toString()}`)
    const read = (file: string) => readFileSync(join(folder, file), 'utf8')
    return { key: read('key.pem'), cert: read('cert.pem') }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
