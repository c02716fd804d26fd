import { createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { isRecord } from '../shared/json.ts'
import { readUpTo } from '../shared/read-up-to.ts'
import { isSafeUrl } from '../shared/safe-url.ts'
import type { LoadKeys } from './jwks.ts'
import { systemWorld } from '../world/system.ts'
import type { World } from '../world/world.ts'

/** The part of `fetch` that loading keys needs. */
export type FetchKeys = (url: string, init: RequestInit) => Promise<Response>

type RemoteKeysOptions = {
  issuer: string
  /** Skips discovery, for providers without a discovery document. */
  jwksUri?: string
  fetch?: FetchKeys
  world?: World | undefined
  /** Timeout of one exchange, including the body. */
  timeoutMs?: number
}

/** Large providers publish about ten keys of 400 bytes, or of 2 KB with a certificate chain. */
const responseBytesMax = 256 * 1024

/**
 * Loads a provider's public keys, located by OpenID Connect Discovery 1.0 unless `jwksUri` is given.
 * Discovery is repeated only after a failed load, in case the provider has moved its keys.
 *
 * @throws Error (never a ServiceError) on an insecure URL, a status other than 200 (including redirects), a
 *   timeout, a response over 256 KiB, or one that is not a key set
 */
export function createRemoteKeys(options: RemoteKeysOptions): LoadKeys {
  const { issuer, world = systemWorld, fetch = world.fetch, timeoutMs = 5000 } = options
  const { timeoutSignal } = world.timers
  let discoveredUri: string | undefined
  const getJson = (url: string) => fetchJson(fetch, url, timeoutSignal(timeoutMs))

  return async () => {
    try {
      const uri = options.jwksUri ?? (discoveredUri ??= await discoverKeysUri(issuer, getJson))
      return parseKeySet(await getJson(requireSecureUrl(uri)))
    } catch (cause) {
      discoveredUri = undefined
      throw cause
    }
  }
}

function requireSecureUrl(address: string): string {
  if (!isSafeUrl(address)) throw new Error('the address must be https, or http on a loopback address')
  return address
}

async function discoverKeysUri(issuer: string, getJson: (url: string) => Promise<unknown>): Promise<string> {
  // Discovery 1.0 §4.1: a trailing slash of the issuer is removed before the path is appended. §4.3: the
  // issuer in the document must be exactly the configured one.
  const url = `${requireSecureUrl(issuer).replace(/\/$/, '')}/.well-known/openid-configuration`
  const document = await getJson(url)
  if (!isRecord(document)) throw new Error('the discovery document is not a JSON object')
  if (document['issuer'] !== issuer) throw new Error('the discovery document names another issuer')
  if (typeof document['jwks_uri'] !== 'string') throw new Error('the discovery document has no jwks_uri')
  return document['jwks_uri']
}

async function fetchJson(fetchKeys: FetchKeys, url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetchKeys(url, {
    signal,
    redirect: 'manual',
    headers: { accept: 'application/json' },
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the identity provider answered with status ${response.status}`)
  }
  return JSON.parse(await readBounded(response))
}

async function readBounded({ body }: Response): Promise<string> {
  const tooLarge = () => new Error(`the identity provider's answer is over ${responseBytesMax} bytes`)
  const bytes = await readUpTo(responseBytesMax, body, tooLarge)
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

function parseKeySet(value: unknown): JSONWebKeySet {
  if (!isRecord(value) || !Array.isArray(value['keys']) || value['keys'].length === 0) {
    // An empty set would reject every login, so it is treated as a fault of the provider.
    throw new Error('the identity provider published no keys')
  }
  return createLocalJWKSet({ keys: value['keys'] }).jwks()
}
