import ipaddr from 'ipaddr.js'
import type { Clock } from '../domain/model/clock.ts'
import {
  maskedValue,
  notSent,
  type SendWebhook,
  type WebhookError,
} from '../domain/model/webhook-delivery.ts'
import type { EndpointHeaders } from '../domain/model/webhook-endpoint.ts'
import { readTraceContext } from '../domain/model/webhook-body.ts'
import { createConnections, type Connections, type Target } from './connections.ts'
import { exchange } from './exchange.ts'
import type { Resolve } from './resolve.ts'
import { readRetryAfter } from './retry.ts'
import { signatureHeaders } from '../shared/webhook-signature.ts'
import { portOf, type TargetGuard } from './targets.ts'
import { systemWorld } from '../world/system.ts'
import type { HostAddress, World } from '../world/world.ts'

/** Timeout from the DNS lookup to the last byte of the response. Leases are longer. */
export const exchangeMsMax = 15_000

export type SenderOptions = {
  guard: TargetGuard
  resolve: Resolve
  clock: Clock
  /** otpd version, sent as `user-agent`. */
  version: string
  /** Timeout for establishing the connection, including TLS. */
  connectTimeoutMs?: number
  /** `exchangeMsMax` by default. */
  exchangeTimeoutMs?: number
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
  /** Pool of connections; its own by default. */
  connections?: Connections
  world?: World
}

/**
 * Sends webhooks to untrusted URLs, protected against SSRF and DNS rebinding: every address of the name is checked for
 * each webhook, and must be allowed; the connection, new or kept alive, goes to one of them.
 *
 * It writes HTTP/1.1 on sockets of its own: Bun's `fetch` makes a TLS context for each delivery when there are more than
 * 60 names, which costs ten times the CPU time, and has no time-out for connecting; a keep-alive agent of `node:https` and
 * undici cost three to four times the CPU time.
 */
export function createWebhookSender(options: SenderOptions): SendWebhook {
  const {
    guard,
    resolve,
    clock,
    version,
    connectTimeoutMs = 5_000,
    exchangeTimeoutMs = exchangeMsMax,
    ca,
  } = options
  const { world = systemWorld } = options
  const connections = options.connections ?? createConnections({ world, ...(ca !== undefined && { ca }) })

  /** By URL. The checks of a URL cost as much as the exchange, and have the same result until the next start. */
  const checkedUrls = new Map<string, CheckedUrl | WebhookError>()

  function checkUrl(text: string): CheckedUrl | WebhookError {
    let checked = checkedUrls.get(text)
    if (checked === undefined) {
      checked = findUrlFault(guard, text) ?? parseUrl(guard, new URL(text))
      if (checkedUrls.size >= checkedUrlsMax) checkedUrls.clear()
      checkedUrls.set(text, checked)
    }
    return checked
  }

  /** Resolves and checks the addresses to connect to, or returns the error. */
  const findAddresses = async ({ host, isAddress }: CheckedUrl): Promise<HostAddress[] | WebhookError> => {
    const addresses = isAddress
      ? [{ address: host, family: host.includes(':') ? 6 : 4 }]
      : await resolve(host).catch(() => [])
    if (addresses.length === 0) return 'dns'
    const allowed = addresses.every(({ address }) => guard.allows(host, address))
    return allowed ? addresses : 'blocked_address'
  }

  return async ({ id, url, secret, headers: ownHeaders, body }, abort) => {
    if (secret === null || ownHeaders === null || body === null) return notSent('unreadable', 0)
    const startedAt = world.monotonic()
    const elapsedMs = () => Math.round(world.monotonic() - startedAt)
    const checked = checkUrl(url)
    if (typeof checked === 'string') return notSent(checked, elapsedMs())
    const addresses = await findAddresses(checked)
    if (typeof addresses === 'string') return notSent(addresses, elapsedMs())
    // A slow look-up, or a process that was paused in it: the lease of the delivery may be over.
    if (elapsedMs() >= exchangeTimeoutMs) return notSent('timeout', elapsedMs())
    const headers = buildHeaders(checked, ownHeaders, body, `otpd/${version}`)
    Object.assign(headers, signatureHeaders(secret, { id, body }, clock.now()))
    const encoded = encodeRequest(checked, headers, body)
    if (!encoded) return notSent('unreadable', elapsedMs())
    const { retryAfter, ...response } = await exchange({
      world,
      connections,
      target: { ...checked, addresses },
      request: encoded,
      connectTimeoutMs,
      timeoutMs: exchangeTimeoutMs - elapsedMs(),
      abort,
    })
    const retryAfterMs = readRetryAfter(retryAfter, clock.now())
    const request = { url, headers: { ...headers, ...maskValues(ownHeaders) } }
    return { request, ...response, retryAfterMs, durationMs: elapsedMs() }
  }
}

const checkedUrlsMax = 1_000

/** A URL that the guard allows. */
type CheckedUrl = Omit<Target, 'addresses'> & {
  /** Whether `host` is an IP address. */
  isAddress: boolean
  /** For the header `host`. */
  authority: string
  /** Path and query. */
  path: string
}

/** Applies the guard again, because its rules may have become stricter since the URL was registered. */
function findUrlFault(guard: TargetGuard, text: string): WebhookError | undefined {
  if (URL.canParse(text) && !guard.allowsPort(new URL(text))) return 'blocked_port'
  return guard.findFault(text) === undefined ? undefined : 'blocked_address'
}

function parseUrl(guard: TargetGuard, url: URL): CheckedUrl {
  const isSecure = url.protocol === 'https:'
  const host = guard.normalizedHost(url)
  return {
    isSecure,
    host,
    isAddress: ipaddr.isValid(host),
    port: portOf(url),
    authority: url.host,
    path: url.pathname + url.search,
  }
}

function buildHeaders(
  { authority }: CheckedUrl,
  ownHeaders: EndpointHeaders,
  body: string,
  userAgent: string,
): Record<string, string> {
  const traceparent = readTraceContext(body)
  return {
    ...ownHeaders,
    ...(traceparent !== undefined && { traceparent }),
    host: authority,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': userAgent,
  }
}

/** An endpoint's own headers have none of the names that otpd sets. */
const maskValues = (headers: EndpointHeaders) =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, maskedValue]))

/**
 * Encodes the POST of a webhook. The URL parser has encoded line breaks and spaces of the path.
 *
 * @returns undefined if a header has a character that could end it
 */
function encodeRequest(
  { path }: CheckedUrl,
  headers: Record<string, string>,
  body: string,
): Buffer | undefined {
  let head = `POST ${path} HTTP/1.1\r\n`
  for (const name in headers) {
    const line = `${name}: ${headers[name]}`
    if (!headerLine.test(line)) return undefined
    head += `${line}\r\n`
  }
  return Buffer.from(`${head}\r\n${body}`)
}

const headerLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e]*$/
