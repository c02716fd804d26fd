import http from 'node:http'
import https from 'node:https'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../domain/model/clock.ts'
import type { SendWebhook, WebhookAttemptResult, WebhookError } from '../domain/model/webhook-delivery.ts'
import type { Resolve, ResolvedAddress } from './resolve.ts'
import { readRetryAfter } from './retry.ts'
import { signatureHeaders } from '../shared/webhook-signature.ts'
import type { TargetGuard } from './targets.ts'

const bytesReadMax = 16 * 1024
const bodyBytesKeptMax = 4 * 1024
/**
 * Limit for 1xx responses. RFC 9110 §15.2 allows any number before the final response; receivers need one or
 * two.
 */
const interimResponsesMax = 10

export type SenderOptions = {
  guard: TargetGuard
  resolve: Resolve
  clock: Clock
  /** otpd version, sent as `user-agent`. */
  version: string
  /** Timeout for establishing the connection, including TLS. */
  connectTimeoutMs?: number
  /** Timeout from the DNS lookup to the last byte of the response. */
  exchangeTimeoutMs?: number
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
}

/**
 * Sends webhooks to untrusted URLs, protected against SSRF and DNS rebinding: a name is resolved once, all
 * its addresses must be allowed, and the connection goes to one of these addresses, never to the result of a
 * second lookup.
 *
 * It uses `node:https` instead of `fetch`: Bun's `fetch` obeys the proxy variables of the environment (a
 * proxy would resolve the name itself), follows redirects, decompresses responses and cannot be pinned to an
 * address. Certificates are verified even if the environment disables that.
 */
export function createWebhookSender(options: SenderOptions): SendWebhook {
  const { guard, resolve, clock, version, connectTimeoutMs = 5_000, exchangeTimeoutMs = 15_000, ca } = options

  /** Resolves and checks the addresses to connect to, or returns the error. */
  const findAddresses = async (text: string): Promise<ResolvedAddress[] | WebhookError> => {
    // The rules may have become stricter since the URL was registered.
    if (URL.canParse(text) && !guard.allowsPort(new URL(text))) return 'blocked_port'
    if (guard.findFault(text) !== undefined) return 'blocked_address'
    const host = guard.normalizedHost(new URL(text))
    const addresses = ipaddr.isValid(host)
      ? [{ address: host, family: ipaddr.parse(host).kind() === 'ipv6' ? 6 : 4 }]
      : await resolve(host).catch(() => [])
    if (addresses.length === 0) return 'dns'
    const allowed = addresses.every(({ address }) => guard.allows(host, address))
    return allowed ? addresses : 'blocked_address'
  }

  return async (message, abort) => {
    const startedAt = performance.now()
    const elapsedMs = () => Math.round(performance.now() - startedAt)
    const addresses = await findAddresses(message.url)
    if (typeof addresses === 'string') {
      return { ...noResponse(addresses), durationMs: elapsedMs() }
    }
    const body = Buffer.from(message.body)
    const headers = {
      ...message.headers,
      'content-type': 'application/json',
      'content-length': String(body.byteLength),
      'user-agent': `otpd/${version}`,
      ...signatureHeaders(message.secret, message, clock.now()),
    }
    const { retryAfter, ...response } = await exchange(new URL(message.url), headers, body, {
      addresses,
      connectTimeoutMs,
      timeoutMs: Math.max(0, exchangeTimeoutMs - elapsedMs()),
      ca,
      abort,
    })
    const retryAfterMs = readRetryAfter(retryAfter, clock.now())
    return { ...response, retryAfterMs, durationMs: elapsedMs() }
  }
}

type ExchangeOptions = {
  addresses: ResolvedAddress[]
  connectTimeoutMs: number
  timeoutMs: number
  ca: string | undefined
  abort: AbortSignal | undefined
}

type ExchangeResult = Pick<WebhookAttemptResult, 'statusCode' | 'error' | 'body'> & {
  retryAfter: string | undefined
}

const noResponse = (error: WebhookError) => ({ statusCode: null, error, body: null, retryAfterMs: null })

/**
 * Sends one POST over a new connection. Once a status was received it decides the result, even if the body
 * fails.
 */
function exchange(
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  { addresses, connectTimeoutMs, timeoutMs, ca, abort }: ExchangeOptions,
): Promise<ExchangeResult> {
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>()
  const isSecure = url.protocol === 'https:'
  // The phase decides which error a broken connection is.
  let phase: 'connect' | 'tls' | 'reset' = 'connect'
  let statusCode: number | undefined
  let retryAfter: string | undefined
  const bodyChunks: Buffer[] = []
  let bytesRead = 0
  let interimResponses = 0

  const request = (isSecure ? https : http).request(url, {
    method: 'POST',
    headers,
    agent: false,
    ...(isSecure && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }),
    // Not called if the URL contains an IP address; `findAddresses` has checked it already.
    lookup: (_host, { all }, callback) => {
      const [first] = addresses
      if (all || !first) callback(null, addresses)
      else callback(null, first.address, first.family)
    },
  })

  /** @param failure the error, used only if no status was received */
  const finish = (failure: WebhookError) => {
    clearTimeout(connectTimer)
    clearTimeout(exchangeTimer)
    abort?.removeEventListener('abort', cancel)
    request.destroy()
    if (statusCode === undefined) resolve({ ...noResponse(failure), retryAfter })
    else resolve({ statusCode, error: statusError(statusCode), body: decodeText(bodyChunks), retryAfter })
  }
  const connectTimer = setTimeout(() => finish('timeout'), connectTimeoutMs)
  const exchangeTimer = setTimeout(() => finish('timeout'), timeoutMs)
  const cancel = () => finish('timeout')
  abort?.addEventListener('abort', cancel)

  const onConnected = () => {
    phase = 'reset'
    clearTimeout(connectTimer)
  }
  request.on('socket', (socket) => {
    socket.once('connect', () => (isSecure ? (phase = 'tls') : onConnected()))
    socket.once('secureConnect', onConnected)
  })
  // A destroyed request can emit errors late; without a listener they would crash the process.
  request.on('error', () => finish(phase))
  request.on('close', () => finish(phase))
  request.on('information', () => {
    if (++interimResponses > interimResponsesMax) finish('reset')
  })
  request.on('response', (response) => {
    statusCode = response.statusCode
    retryAfter = response.headers['retry-after']
    response.on('data', (chunk: Buffer) => {
      if (bytesRead < bodyBytesKeptMax) bodyChunks.push(chunk.subarray(0, bodyBytesKeptMax - bytesRead))
      bytesRead += chunk.byteLength
      if (bytesRead >= bytesReadMax) finish('reset')
    })
    response.on('end', () => finish('reset'))
    response.on('error', () => finish('reset'))
  })
  request.end(body)
  if (abort?.aborted) cancel()
  return promise
}

function statusError(statusCode: number): WebhookError | null {
  if (statusCode >= 200 && statusCode < 300) return null
  return statusCode >= 300 && statusCode < 400 ? 'redirect' : 'bad_status'
}

/** Decodes arbitrary bytes as UTF-8, without NUL, which PostgreSQL's `text` cannot store. */
const decodeText = (chunks: Buffer[]) => Buffer.concat(chunks).toString('utf8').replaceAll('\0', '')
