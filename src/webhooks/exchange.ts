import type { WebhookAttemptResult, WebhookError } from '../domain/model/webhook-delivery.ts'
import type { Connection, Connections, Target } from './connections.ts'
import { createResponseReader } from './response-reader.ts'
import type { Timer, World } from '../world/world.ts'

type ExchangeOptions = {
  world: World
  connections: Connections
  target: Target
  /** The encoded request. */
  request: Buffer
  /** Timeout for establishing a connection, including TLS. */
  connectTimeoutMs: number
  /** Timeout for everything. */
  timeoutMs: number
  abort: AbortSignal | undefined
}

type ExchangeResult = Pick<WebhookAttemptResult, 'statusCode' | 'error' | 'body'> & {
  /** The header's value. */
  retryAfter: string | undefined
}

/**
 * Sends one request and reads the response. Once a status was received it decides the result, even if the body fails.
 * Requests are never pipelined.
 *
 * A kept-alive connection that ends before any byte of the response was closed by the receiver while it was idle; the
 * request is sent once more on a new connection. The receiver may have processed it all the same: webhooks are
 * delivered at least once.
 */
export function exchange(options: ExchangeOptions): Promise<ExchangeResult> {
  const { connections, target, request, connectTimeoutMs, timeoutMs, abort, world } = options
  const { timers } = world
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>()
  const reader = createResponseReader()
  let hasResponse = false
  let isReused = false
  let connection: Connection | undefined
  let connectTimer: Timer | undefined
  // Also by the clock: a process that was paused may see the connection open before the timer ends.
  const deadline = world.monotonic() + timeoutMs

  const start = (isFresh: boolean) => {
    const user = { onOpen, onData, onEnd }
    const acquired = connections.acquire(target, user, isFresh)
    connection = acquired.connection
    isReused = acquired.isReused
    if (isReused) connection.write(request)
    else connectTimer = timers.setTimeout(() => finish('timeout'), connectTimeoutMs)
  }
  const onOpen = () => {
    timers.clearTimeout(connectTimer)
    if (world.monotonic() < deadline) connection?.write(request)
    else finish('timeout')
  }
  const onData = (bytes: Buffer) => {
    hasResponse = true
    const state = reader.read(bytes)
    if (state === 'partial') return
    if (state === 'complete' && reader.isReusable()) {
      connection?.release()
      connection = undefined
    }
    finish('reset')
  }
  const onEnd = () => {
    const phase = connection?.phase() ?? 'open'
    connection = undefined
    if (isReused && !hasResponse && world.monotonic() < deadline) start(true)
    else finish(phase === 'open' ? 'reset' : phase)
  }

  /** @param failure the error, used only if no status was received */
  const finish = (failure: WebhookError) => {
    timers.clearTimeout(connectTimer)
    timers.clearTimeout(exchangeTimer)
    abort?.removeEventListener('abort', cancel)
    connection?.destroy()
    const received = reader.response()
    resolve(
      received
        ? { ...received, error: statusError(received.statusCode), body: decodeText(received.body) }
        : { statusCode: null, error: failure, body: null, retryAfter: undefined },
    )
  }
  const exchangeTimer = timers.setTimeout(() => finish('timeout'), timeoutMs)
  const cancel = () => finish('timeout')
  abort?.addEventListener('abort', cancel)
  if (abort?.aborted) cancel()
  else start(false)
  return promise
}

function statusError(statusCode: number): WebhookError | null {
  if (statusCode >= 200 && statusCode < 300) return null
  return statusCode >= 300 && statusCode < 400 ? 'redirect' : 'bad_status'
}

/** Decodes arbitrary bytes as UTF-8, without NUL, which PostgreSQL's `text` cannot store. */
const decodeText = (bytes: Buffer) => bytes.toString('utf8').replaceAll('\0', '')
