import { testKeys } from './keys.ts'
import type { Clock } from '../../src/domain/model/clock.ts'
import { createApp } from '../../src/http/app.ts'
import { listen } from '../../src/http/listener.ts'
import { createServices } from '../../src/server/services.ts'
import { requireConfig, loadEnv } from './config.ts'
import type { TestService } from './service.ts'
import { testWorld } from './world.ts'

type IdentityOptions = {
  /** `OTPD_*` variables. Without an issuer the built-in identity provider is used. */
  env?: Record<string, string>
  clock?: Clock
  /** Clock of the identity provider. The service's clock by default. */
  wallClock?: Clock
  /** Public URL of the server. Its own address by default. */
  publicUrl?: string
}

/**
 * Starts a server on a loopback port, with the store of a test service. It trusts its peer as a proxy, so that a test
 * can choose its client address with `X-Forwarded-For`.
 */
export async function startIdentityServer(service: TestService, options: IdentityOptions = {}) {
  let url = ''
  const services = createServices({
    config: requireConfig(loadEnv({ OTPD_TRUSTED_PROXIES: '127.0.0.1', ...options.env })),
    store: service.store,
    clock: options.clock ?? service.clock,
    wall: options.wallClock,
    keys: testKeys,
    random: (bytes) => crypto.getRandomValues(bytes),
    world: testWorld,
    version: '0.0.0-test',
    node: { name: 'test', isSole: true },
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
