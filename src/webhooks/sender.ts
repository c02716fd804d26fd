import http from 'node:http'
import https from 'node:https'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../domain/model/clock.ts'
import type { SendWebhook, WebhookAnswer, WebhookError } from '../domain/webhooks/delivery.ts'
import type { Resolve, ResolvedAddress } from './resolve.ts'
import { readRetryAfter } from './retry.ts'
import { signWebhook } from './signature.ts'
import type { TargetGuard } from './targets.ts'

const bytesReadMax = 16 * 1024
const bytesKeptMax = 4 * 1024
/** Before an answer a receiver may send any number of these (RFC 9110 §15.2); none needs more than one or two. */
const interimAnswersMax = 10

export type SenderOptions = {
  guard: TargetGuard
  resolve: Resolve
  clock: Clock
  /** Of otpd, for `user-agent`. */
  version: string
  /** Until the connection stands, TLS included. */
  connectTimeoutMs?: number
  /** From the question for the address to the last byte of the answer. */
  exchangeTimeoutMs?: number
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string
}

/**
 * Sends webhooks to URLs that strangers chose. It connects only to an address that it has checked itself: a name is
 * resolved once, all its addresses must be allowed, and the connection is made to one of these, so that a name which
 * answers differently the next moment gains nothing.
 *
 * `node:https` and not `fetch`: Bun's `fetch` obeys the proxy variables of the environment, which would resolve the
 * name again on their own, follows redirects, unpacks compressed answers and cannot be told an address. The
 * certificate is checked even where the environment says otherwise.
 */
export function createWebhookSender(options: SenderOptions): SendWebhook {
  const { guard, resolve, clock, version, connectTimeoutMs = 5_000, exchangeTimeoutMs = 15_000, ca } = options

  /** The addresses to connect to, or why there are none. */
  const findAddresses = async (text: string): Promise<ResolvedAddress[] | WebhookError> => {
    // The rules may have become stricter since the URL was registered.
    if (guard.faultOf(text) !== undefined) return 'blocked_address'
    const host = guard.hostOf(new URL(text))
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
      return { ...unanswered(addresses), durationMs: elapsedMs() }
    }
    const body = Buffer.from(message.body)
    const headers = {
      ...message.headers,
      'content-type': 'application/json',
      'content-length': String(body.byteLength),
      'user-agent': `otpd/${version}`,
      ...signWebhook(message, clock.now()),
    }
    const { retryAfter, ...answer } = await exchange(new URL(message.url), headers, body, {
      addresses,
      connectTimeoutMs,
      timeoutMs: Math.max(0, exchangeTimeoutMs - elapsedMs()),
      ca,
      abort,
    })
    const retryAfterMs = readRetryAfter(retryAfter, clock.now())
    return { ...answer, retryAfterMs, durationMs: elapsedMs() }
  }
}

type ExchangeOptions = {
  addresses: ResolvedAddress[]
  connectTimeoutMs: number
  timeoutMs: number
  ca: string | undefined
  abort: AbortSignal | undefined
}

type Exchanged = Pick<WebhookAnswer, 'statusCode' | 'error' | 'body'> & { retryAfter: string | undefined }

const unanswered = (error: WebhookError) => ({ statusCode: null, error, body: null, retryAfterMs: null })

/** One POST over a connection of its own. The status decides, whatever becomes of the body behind it. */
function exchange(
  url: URL,
  headers: Record<string, string>,
  body: Buffer,
  { addresses, connectTimeoutMs, timeoutMs, ca, abort }: ExchangeOptions,
): Promise<Exchanged> {
  const { promise, resolve } = Promise.withResolvers<Exchanged>()
  const secure = url.protocol === 'https:'
  // What a broken connection means depends on how far it had come.
  let phase: 'connect' | 'tls' | 'reset' = 'connect'
  let statusCode: number | undefined
  let retryAfter: string | undefined
  const kept: Buffer[] = []
  let bytesRead = 0
  let interimAnswers = 0

  const request = (secure ? https : http).request(url, {
    method: 'POST',
    headers,
    agent: false,
    ...(secure && { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }),
    // Not called for a URL that holds an address; that one was checked as it stands.
    lookup: (_host, { all }, answer) => {
      const [first] = addresses
      if (all || !first) answer(null, addresses)
      else answer(null, first.address, first.family)
    },
  })

  /** @param failure counts only where no status has come */
  const end = (failure: WebhookError) => {
    clearTimeout(connectTimer)
    clearTimeout(exchangeTimer)
    abort?.removeEventListener('abort', cancel)
    request.destroy()
    if (statusCode === undefined) resolve({ ...unanswered(failure), retryAfter })
    else resolve({ statusCode, error: errorOf(statusCode), body: textOf(kept), retryAfter })
  }
  const connectTimer = setTimeout(() => end('timeout'), connectTimeoutMs)
  const exchangeTimer = setTimeout(() => end('timeout'), timeoutMs)
  const cancel = () => end('timeout')
  abort?.addEventListener('abort', cancel)

  const connected = () => {
    phase = 'reset'
    clearTimeout(connectTimer)
  }
  request.on('socket', (socket) => {
    socket.once('connect', () => (secure ? (phase = 'tls') : connected()))
    socket.once('secureConnect', connected)
  })
  // A destroyed request reports errors late; without a listener they would end the process.
  request.on('error', () => end(phase))
  request.on('close', () => end(phase))
  request.on('information', () => {
    if (++interimAnswers > interimAnswersMax) end('reset')
  })
  request.on('response', (response) => {
    statusCode = response.statusCode
    retryAfter = response.headers['retry-after']
    response.on('data', (chunk: Buffer) => {
      if (bytesRead < bytesKeptMax) kept.push(chunk.subarray(0, bytesKeptMax - bytesRead))
      bytesRead += chunk.byteLength
      if (bytesRead >= bytesReadMax) end('reset')
    })
    response.on('end', () => end('reset'))
    response.on('error', () => end('reset'))
  })
  request.end(body)
  if (abort?.aborted) cancel()
  return promise
}

function errorOf(statusCode: number): WebhookError | null {
  if (statusCode >= 200 && statusCode < 300) return null
  return statusCode >= 300 && statusCode < 400 ? 'redirect' : 'bad_status'
}

/** Whatever the bytes are; NUL is left out, since PostgreSQL's text cannot hold it. */
const textOf = (chunks: Buffer[]) => Buffer.concat(chunks).toString('utf8').replaceAll('\0', '')
