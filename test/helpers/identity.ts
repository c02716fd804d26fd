import { createBuiltInIdentity, createExternalIdentity, type Identity } from '../../src/auth/identity.ts'
import { createIds } from '../../src/domain/ids.ts'
import { deriveKeys } from '../../src/domain/keys.ts'
import { FREE_PLAN } from '../../src/domain/plans.ts'
import type { Clock } from '../../src/domain/ports.ts'
import { createApp } from '../../src/http/app.ts'
import { createClientAddress } from '../../src/http/client-address.ts'
import { createConsoleAuth } from '../../src/http/console-auth.ts'
import type { TestService } from './service.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)

type Wishes = {
  signUp?: 'open' | 'closed'
  /** Without one the built-in provider is in charge. */
  oidc?: { issuer: string; audience: string[]; jwksUri?: string }
  clock?: Clock
  /** Where the server says that it is; its own address if left out. */
  publicUrl?: string
}

/**
 * The application with real console authentication, listening on a loopback port. Its peer is a trusted proxy, so that
 * a test may call from anywhere by `X-Forwarded-For`.
 *
 * @param service lends everything else; what was stored there before is there
 */
export async function startWithIdentity(service: TestService, wishes: Wishes = {}) {
  const clock = wishes.clock ?? service.clock
  const needs = {
    store: service.store,
    clock,
    newId: createIds(clock, random),
    random,
    keys: deriveKeys(Buffer.alloc(32, 7)),
    plans: { free: FREE_PLAN },
    signUp: wishes.signUp ?? 'closed',
  }
  let url = ''
  const { oidc } = wishes
  const identity: Identity = oidc
    ? createExternalIdentity(needs, { ...oidc, jwksUri: oidc.jwksUri ?? null, clientId: null })
    : createBuiltInIdentity(needs, () => wishes.publicUrl ?? url)
  const app = createApp({
    ...service.services,
    ...identity,
    consoleAuth: createConsoleAuth(identity),
    clientAddress: createClientAddress(['127.0.0.1']),
  }).listen({ hostname: '127.0.0.1', port: 0, reusePort: false })
  url = `http://127.0.0.1:${app.server?.port}`

  return {
    url,
    identity,
    get: (path: string, token?: string) =>
      fetch(url + path, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    postForm: (path: string, form: Record<string, string>, from = '192.0.2.1') =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'x-forwarded-for': from },
        body: new URLSearchParams(form),
      }),
    stop: () => app.stop(true),
  }
}
