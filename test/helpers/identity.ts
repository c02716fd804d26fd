import { masterKeyBytes } from '../../src/domain/model/keys.ts'
import type { Clock } from '../../src/domain/model/clock.ts'
import { createApp } from '../../src/http/app.ts'
import { listen } from '../../src/http/listener.ts'
import { createServices } from '../../src/server/services.ts'
import { requireConfig, loadEnv } from './config.ts'
import type { TestService } from './service.ts'

type IdentityOptions = {
  /** `OTPD_*` variables; without an issuer the built-in provider is in charge. */
  env?: Record<string, string>
  clock?: Clock
  /** What the provider's clock shows; the same if left out. */
  wallClock?: Clock
  /** Where the server says that it is; its own address if left out. */
  publicUrl?: string
}

/**
 * A server that listens on a loopback port, over the store of a test service. Its peer is a trusted proxy, so that a
 * test may call from anywhere by `X-Forwarded-For`.
 */
export async function startIdentityServer(service: TestService, options: IdentityOptions = {}) {
  let url = ''
  const services = createServices({
    config: requireConfig(loadEnv({ OTPD_TRUSTED_PROXIES: '127.0.0.1', ...options.env })),
    store: service.store,
    clock: options.clock ?? service.clock,
    wall: options.wallClock,
    masterKey: new Uint8Array(masterKeyBytes).fill(7),
    random: (bytes) => crypto.getRandomValues(bytes),
    version: '0.0.0-test',
    publicUrl: () => options.publicUrl ?? url,
  })
  const onBug = (error: unknown) => {
    throw error
  }
  const app = createApp({ ...services, readiness: () => Promise.resolve('ready' as const), onBug })
  const listener = listen({ host: '127.0.0.1', port: 0 }, app, { newId: services.newId, onBug })
  url = listener.url

  return {
    url,
    services,
    get: (path: string, token?: string) =>
      fetch(url + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    postForm: (path: string, form: Record<string, string>, clientIp = '192.0.2.1') =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'x-forwarded-for': clientIp },
        body: new URLSearchParams(form),
      }),
    stop: () => listener.stop(0),
  }
}
