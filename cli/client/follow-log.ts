import type { Io } from '../terminal/io.ts'
import { CliError, isRetryable } from '../terminal/errors.ts'
import { toHttpResponse, unreachableError } from '../session/http.ts'
import { whenAborted } from '../terminal/interrupt.ts'
import { responseError } from '../session/response-error.ts'
import { formatDuration } from '../terminal/text.ts'
import { tokenHints } from './api.ts'
import type { LogEntry } from './resources.ts'
import { buildPath, type Call } from './routes.ts'
import type { ServerChoice } from '../session/server-choice.ts'
import type { Tokens } from '../session/tokens.ts'
import { readSse } from './sse.ts'

/** A change of the connection: it was lost and is retried until it is back, or it is back. */
export type ConnectionEvent =
  { kind: 'disconnected'; reason: string } | { kind: 'reconnected'; afterMs: number }

type LogStreamEvent = { kind: 'entry'; entry: LogEntry; json: string } | ConnectionEvent

/** Describes a change of the connection. @param what is followed, like `events` */
export const connectionText = (event: ConnectionEvent, what = 'events') =>
  event.kind === 'disconnected'
    ? `${event.reason}, retrying`
    : `reconnected after ${formatDuration(event.afterMs)}, no ${what} missed`

/** Reason of a lost connection when no other is known. */
export const connectionLost = 'the connection was lost'

type FollowOptions = {
  query: NonNullable<Call<'GET', '/v1/logs/stream'>['query']>
  /** Ends the generator without an error. */
  signal: AbortSignal
  /** Called once, when the first connection is open: later events will be yielded. */
  onConnected?(): void
}

type LogConnection = { server: ServerChoice; tokens: Tokens }

/** The server sends a heartbeat every ten seconds. */
const silenceMsMax = 25_000
const pauseMsMin = 250
const pauseMsMax = 10_000

/**
 * Yields log entries as they are written, each exactly once. Reconnects with exponential backoff and resumes after the
 * last event id. An expired token is renewed silently.
 *
 * @throws CliError when the first connection fails, or when a retry cannot help
 */
export async function* followLog(
  { io, timeoutMs }: { io: Io; timeoutMs: number },
  connection: LogConnection,
  { query, signal, onConnected }: FollowOptions,
): AsyncGenerator<LogStreamEvent> {
  let lastEventId = query.after
  let disconnectedAt: number | null = null
  let wasConnected = false
  let failures = 0

  for (;;) {
    let reason = connectionLost
    const attempt = new AbortController()
    const abortAttempt = () => attempt.abort()
    signal.addEventListener('abort', abortAttempt)
    const watchdog = createWatchdog(() => attempt.abort(new DOMException('silence', 'TimeoutError')))
    try {
      watchdog.start(timeoutMs)
      const body = await openStream(connection, { ...query, after: lastEventId }, attempt.signal, timeoutMs)
      if (!wasConnected) onConnected?.()
      wasConnected = true
      if (disconnectedAt !== null) yield { kind: 'reconnected', afterMs: io.now() - disconnectedAt }
      disconnectedAt = null
      watchdog.start(silenceMsMax)
      for await (const { id, event, data } of readSse(body, () => watchdog.start(silenceMsMax))) {
        failures = 0
        if (event === 'end') reason = endReason(data)
        if (event !== 'message') continue
        if (id !== null) lastEventId = id
        if (data === null) continue
        // The server has the same version as this client, and its types are the contract.
        const entry: LogEntry = JSON.parse(data)
        watchdog.stop()
        yield { kind: 'entry', entry, json: data }
        watchdog.start(silenceMsMax)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof CliError && (!wasConnected || !isRetryable(error))) throw error
    } finally {
      watchdog.stop()
      signal.removeEventListener('abort', abortAttempt)
      attempt.abort()
    }
    if (signal.aborted) return
    if (reason !== tokenExpired) {
      if (disconnectedAt === null) yield { kind: 'disconnected', reason }
      disconnectedAt ??= io.now()
    }
    // Jitter: many clients lose a server at once, and would otherwise all reconnect at once.
    const pauseMs = Math.min(pauseMsMax, pauseMsMin * 2 ** failures++) * (0.5 + Math.random() / 2)
    await Promise.race([io.sleep(pauseMs), whenAborted(signal)])
    if (signal.aborted) return
  }
}

const tokenExpired = 'the token expired'

function endReason(data: string | null) {
  if (data?.includes('"token_expired"')) return tokenExpired
  return data?.includes('"draining"') ? 'the server is shutting down' : 'the server ended the stream'
}

async function openStream(
  { server, tokens }: LogConnection,
  query: FollowOptions['query'],
  signal: AbortSignal,
  timeoutMs: number,
): Promise<ReadableStream<Uint8Array>> {
  const token = await tokens.current()
  if (token === null) throw tokens.notLoggedInError()
  const connect = (value: string) =>
    fetch(server.url + buildPath('/v1/logs/stream', { query }), {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${value}` },
      redirect: 'manual',
      signal,
    }).catch((error: unknown) => {
      throw unreachableError(server, error, timeoutMs)
    })
  let response = await connect(token.value)
  if (response.status === 401) {
    const freshToken = await tokens.replace(token)
    if (freshToken !== null) response = await connect(freshToken.value)
  }
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (response.status === 200 && isStream && response.body !== null) return response.body
  const refusal = toHttpResponse(response, await response.text())
  throw responseError(server, refusal, tokenHints(server, refusal, token))
}

function createWatchdog(onTimeout: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stop = () => clearTimeout(timer)
  return {
    stop,
    start(afterMs: number) {
      stop()
      timer = setTimeout(onTimeout, afterMs)
    },
  }
}
