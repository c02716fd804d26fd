import { createServer } from 'node:http'
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
} from 'jose'
import * as oidc from 'oidc-provider'
import { isRecord } from '../../src/shared/json.ts'

/** Person whose claims the provider puts into ID tokens. */
type Person = { subject: string; email?: string; emailVerified?: boolean; name?: string }

/**
 * Starts a certified OpenID provider (the `oidc-provider` package) on a loopback port. Its one client is public and
 * native, and may use the device flow, the code flow with PKCE on any loopback port, and refresh tokens. The development
 * login pages accept any password and use the login name as the subject.
 */
export async function startOidcProvider() {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the provider has no port')
  const issuer = `http://127.0.0.1:${address.port}`
  const clientId = 'otpd-cli'
  const people = new Map<string, Person>()

  const provider = new oidc.Provider(issuer, {
    jwks: { keys: [await privateJwk('RS256'), await privateJwk('ES256')] },
    clients: [
      {
        client_id: clientId,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        redirect_uris: ['http://127.0.0.1/callback'],
        response_types: ['code'],
      },
    ],
    features: {
      deviceFlow: { enabled: true },
      devInteractions: { enabled: true },
      revocation: { enabled: true },
    },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['test'] },
    findAccount: (_context, subject) => ({
      accountId: subject,
      claims: () => {
        const person = people.get(subject)
        return {
          sub: subject,
          email: person?.email ?? `${subject}@example.test`,
          email_verified: person?.emailVerified ?? true,
          name: person?.name ?? subject,
        }
      },
    }),
    ttl: { IdToken: 300, AccessToken: 300, DeviceCode: 60, Session: 600, Grant: 600, Interaction: 600 },
  })
  // The provider asks devices to poll every five seconds.
  provider.use(async (context, next) => {
    await next()
    if (context.path === '/device/auth') Object.assign(context.body, { interval: 0.05 })
  })
  server.on('request', provider.callback())

  const post = async (path: string, fields: Record<string, string>): Promise<Record<string, unknown>> => {
    const response = await fetch(`${issuer}${path}`, { method: 'POST', body: new URLSearchParams(fields) })
    const responseBody: unknown = await response.json()
    if (!response.ok || !isRecord(responseBody)) throw new Error(`${path}: ${JSON.stringify(responseBody)}`)
    return responseBody
  }

  const deviceCode = async (userCode: string) => {
    const code = await provider.DeviceCode.findByUserCode(userCode.replace('-', ''), {
      ignoreExpiration: true,
    })
    if (!code) throw new Error('no such user code')
    return code
  }

  return {
    issuer,
    clientId,

    /** Approves a device login as if the person had entered the user code on the provider's page. */
    async approveDevice(userCode: string, person: Person): Promise<void> {
      people.set(person.subject, person)
      const scope = 'openid email profile offline_access'
      const grant = new provider.Grant({ clientId, accountId: person.subject })
      grant.addOIDCScope(scope)
      const grantId = await grant.save()
      const code = await deviceCode(userCode)
      Object.assign(code, {
        accountId: person.subject,
        grantId,
        scope,
        authTime: Math.floor(Date.now() / 1000),
        claims: {},
        sessionUid: 'session',
        expiresWithSession: false,
      })
      await code.save()
    },

    async refuseDevice(userCode: string): Promise<void> {
      const code = await deviceCode(userCode)
      Object.assign(code, { error: 'access_denied', errorDescription: 'The person said no' })
      await code.save()
    },

    /** Logs a person in by the device flow and returns the ID token from the token endpoint. */
    async idTokenFor(person: Person): Promise<string> {
      const device = await post('/device/auth', { client_id: clientId, scope: 'openid email profile' })
      await this.approveDevice(String(device['user_code']), person)
      const tokens = await post('/token', {
        grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
        device_code: String(device['device_code']),
        client_id: clientId,
      })
      return String(tokens['id_token'])
    },

    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type SigningKey = {
  kid: string
  alg: string
  privateKey: CryptoKey
  publicKey: CryptoKey
  publicJwk: JWK
}

export async function makeSigningKey(alg: string, kid?: string): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  const keyId = kid ?? (await calculateJwkThumbprint(jwk))
  return { kid: keyId, alg, privateKey, publicKey, publicJwk: { ...jwk, kid: keyId, alg, use: 'sig' } }
}

/** How the fake provider answers a request for its keys (JWKS). */
export type JwksMode = 'ok' | 'error' | 'hang' | 'endless' | 'redirect' | 'garbage' | 'empty'

type FakeProviderState = {
  keys: JWK[]
  mode: JwksMode
  /** Overrides fields of the valid discovery document. */
  discovery: Record<string, unknown>
  jwksFetchCount: number
  discoveryFetchCount: number
}

/**
 * Starts a provider whose documents, failures and tokens the test controls. It counts the requests for its keys and for
 * its discovery document.
 */
export async function startFakeOidcProvider() {
  const key = await makeSigningKey('RS256', 'k1')
  const state: FakeProviderState = {
    keys: [key.publicJwk],
    mode: 'ok',
    discovery: {},
    jwksFetchCount: 0,
    discoveryFetchCount: 0,
  }
  const stopped = new AbortController()

  const respondWithKeys = async (): Promise<Response> => {
    if (state.mode === 'error') return new Response('down', { status: 503 })
    if (state.mode === 'redirect') return Response.redirect('/elsewhere', 302)
    if (state.mode === 'garbage') return new Response('<html>', { status: 200 })
    if (state.mode === 'empty') return Response.json({ keys: [] })
    if (state.mode === 'endless') return new Response(endlessBody())
    if (state.mode === 'hang')
      await new Promise((resolve) => stopped.signal.addEventListener('abort', resolve))
    return Response.json({ keys: state.keys } satisfies JSONWebKeySet)
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request): Promise<Response> {
      const { pathname, origin } = new URL(request.url)
      if (pathname === '/.well-known/openid-configuration') {
        state.discoveryFetchCount += 1
        return Response.json({ issuer: origin, jwks_uri: `${origin}/jwks`, ...state.discovery })
      }
      if (pathname === '/elsewhere') return Response.json({ keys: state.keys })
      state.jwksFetchCount += 1
      return respondWithKeys()
    },
  })
  const issuer = `http://127.0.0.1:${server.port}`

  return {
    issuer,
    audience: 'client-1',
    key,
    /** Tests may read and change it at any time. */
    state,

    /** Signs a valid token with overridden claims and header. A claim set to undefined is omitted. */
    sign(
      nowMs: number,
      claims: JWTPayload = {},
      header: Record<string, unknown> = {},
      signer = key,
    ): Promise<string> {
      const nowSeconds = Math.floor(nowMs / 1000)
      return new SignJWT({
        iss: issuer,
        aud: 'client-1',
        sub: 'user-1',
        iat: nowSeconds,
        exp: nowSeconds + 3600,
        ...claims,
      })
        .setProtectedHeader({ alg: signer.alg, kid: signer.kid, ...header })
        .sign(signer.privateKey)
    },

    stop() {
      stopped.abort()
      return server.stop(true)
    },
  }
}

function endlessBody(): ReadableStream<Uint8Array> {
  const chunk = new TextEncoder().encode(`${'{"keys":['.padEnd(16_384, ' ')}`)
  return new ReadableStream({ pull: (controller) => controller.enqueue(chunk) })
}

async function privateJwk(alg: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: alg, alg, use: 'sig' }
}
