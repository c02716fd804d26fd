import type { Context } from '../context.ts'
import { CliError } from '../terminal/errors.ts'
import { unreachable } from './http.ts'
import { aborted } from '../terminal/interrupt.ts'
import { replyError } from './reply-error.ts'
import type { LogEntry } from './resources.ts'
import { pathOf, type Call } from './routes.ts'
import { readSse } from './sse.ts'

export type Followed =
  | { kind: 'entry'; entry: LogEntry; json: string }
  /** The connection is gone; it is tried again until it is back. */
  | { kind: 'lost'; why: string }
  | { kind: 'back'; afterMs: number }

export type FollowOptions = {
  query: NonNullable<Call<'GET', '/v1/logs/stream'>['query']>
  /** Ends the following without an error. */
  signal: AbortSignal
  /** Told once, when the first connection stands: what happens from then on is followed. */
  onConnected?(): void
}

/** The server sends a sign of life every ten seconds. */
const silenceMsMax = 25_000
const pauseMsMin = 250
const pauseMsMax = 10_000

type Connection = ReturnType<Context['connect']>

/**
 * The log as it grows, over every loss of the connection: each entry once, none left out. A token that ends is renewed
 * without a word.
 *
 * Throws CliError where the first connection fails, or where trying again would change nothing.
 */
export async function* followLog(
  { io, timeoutMs }: Context,
  connection: Connection,
  { query, signal, onConnected }: FollowOptions,
): AsyncGenerator<Followed> {
  let place = query.after
  let lostAt: number | null = null
  let wasConnected = false
  let failures = 0

  for (;;) {
    let why = 'the connection was lost'
    const attempt = new AbortController()
    const giveUp = () => attempt.abort()
    signal.addEventListener('abort', giveUp)
    const alarm = createAlarm(() => attempt.abort(new DOMException('silence', 'TimeoutError')))
    try {
      alarm.set(timeoutMs)
      const body = await openStream(connection, { ...query, after: place }, attempt.signal, timeoutMs)
      if (!wasConnected) onConnected?.()
      wasConnected = true
      if (lostAt !== null) yield { kind: 'back', afterMs: io.now() - lostAt }
      lostAt = null
      alarm.set(silenceMsMax)
      for await (const { id, event, data } of readSse(body, () => alarm.set(silenceMsMax))) {
        failures = 0
        if (event === 'end') why = reasonOf(data)
        if (event !== 'message') continue
        if (id !== null) place = id
        if (data === null) continue
        // The server is of the same version as this client, and its types are the contract.
        const entry: LogEntry = JSON.parse(data)
        alarm.stop()
        yield { kind: 'entry', entry, json: data }
        alarm.set(silenceMsMax)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof CliError && (!wasConnected || !isPassing(error))) throw error
    } finally {
      alarm.stop()
      signal.removeEventListener('abort', giveUp)
      attempt.abort()
    }
    if (signal.aborted) return
    if (why !== tokenEnded) {
      if (lostAt === null) yield { kind: 'lost', why }
      lostAt ??= io.now()
    }
    // Many clients lose a server at once; without chance they would all come back at once.
    const pauseMs = Math.min(pauseMsMax, pauseMsMin * 2 ** failures++) * (0.5 + Math.random() / 2)
    await Promise.race([io.sleep(pauseMs), aborted(signal)])
    if (signal.aborted) return
  }
}

const tokenEnded = 'the token ended'

function reasonOf(data: string | null) {
  if (data?.includes('"token_expired"')) return tokenEnded
  return data?.includes('"draining"') ? 'the server is shutting down' : 'the server ended the stream'
}

/** The same call may succeed later. */
export const isPassing = ({ status, code }: CliError) =>
  status === undefined ? code === 'SERVER_UNREACHABLE' : status >= 500 || status === 429 || status === 408

async function openStream(
  { server, tokens }: Connection,
  query: FollowOptions['query'],
  signal: AbortSignal,
  timeoutMs: number,
): Promise<ReadableStream<Uint8Array>> {
  const token = await tokens.current()
  if (token === null) throw tokens.notLoggedIn()
  const ask = (value: string) =>
    fetch(server.url + pathOf('/v1/logs/stream', { query }), {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${value}` },
      redirect: 'manual',
      signal,
    }).catch((error: unknown) => {
      throw unreachable(server, error, timeoutMs)
    })
  let response = await ask(token.value)
  if (response.status === 401) {
    const fresh = await tokens.replace(token)
    if (fresh !== null) response = await ask(fresh.value)
  }
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  if (response.status === 200 && isStream && response.body !== null) return response.body
  const body = await response.text()
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  throw replyError(
    server,
    {
      status: response.status,
      body,
      json: parseJson(body),
      retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : null,
    },
    response.status === 401 ? [`The token came from ${token.from}.`, 'Log in again with: otpd login'] : [],
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function createAlarm(ring: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const stop = () => clearTimeout(timer)
  return {
    stop,
    set(afterMs: number) {
      stop()
      timer = setTimeout(ring, afterMs)
    },
  }
}
