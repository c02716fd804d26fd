import type { LogEntry } from '../domain/log/events.ts'
import type { LogStream } from '../domain/log/stream.ts'
import type { Clock } from '../domain/model/clock.ts'

/** Bun cuts a connection on which nothing moves for 30 seconds. */
const heartbeatMsDefault = 10_000
/** What a browser waits before it comes back. */
const retryMs = 1_000

export type EventStreamNeeds = {
  clock: Clock
  present(entry: LogEntry): object
  onError(error: unknown): void
  heartbeatMs?: number | undefined
}

/**
 * A log stream as server-sent events (WHATWG HTML §9.2). Pull-based: entries are read when the connection takes more,
 * so that a reader who stalls keeps nothing here but its place.
 *
 * - Each entry has `id` and `data` (JSON), and no `event`, so that every client gets it as a message.
 * - `id` alone is the place to come back to, which a client keeps without dispatching anything: at the start, and where
 *   a filter left out what was written since.
 * - `: heartbeat` stands where nothing was sent for ten seconds.
 * - `event: end` with `{"reason"}` is in front of an end that is not the client's.
 */
export function createEventStream(
  stream: LogStream,
  { clock, present, onError, heartbeatMs = heartbeatMsDefault }: EventStreamNeeds,
): ReadableStream<Uint8Array> {
  const utf8 = new TextEncoder()
  let lastSentPosition: string | undefined

  /** Waits until there is something to say. Null where the client is gone. */
  async function nextChunk(
    heartbeat: Promise<'heartbeat'>,
  ): Promise<{ text: string; isLast: boolean } | null> {
    for (;;) {
      const { entries, position, hasMore: isFull, endReason: end } = await stream.read()
      if (end === 'closed') return null
      if (end !== null)
        return { text: `event: end\ndata: ${JSON.stringify({ reason: end })}\n\n`, isLast: true }
      // A long log is not allowed to keep everybody else waiting.
      if (isFull) await new Promise(setImmediate)
      const opening = lastSentPosition === undefined ? `retry: ${retryMs}\n` : ''
      const last = entries.at(-1)
      if (last) {
        lastSentPosition = last.id
        const messages = entries.map(
          (entry) => `id: ${entry.id}\ndata: ${JSON.stringify(present(entry))}\n\n`,
        )
        return { text: opening + messages.join(''), isLast: false }
      }
      const wakeReason = opening === '' && (await Promise.race([stream.waitForChange(), heartbeat]))
      if (wakeReason === undefined) continue
      const text = position === lastSentPosition ? ': heartbeat\n\n' : `${opening}id: ${position}\n\n`
      lastSentPosition = position
      return { text, isLast: false }
    }
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const timer = startTimer(Math.min(heartbeatMs, Math.max(0, stream.endsAt - clock.now())))
        const chunk = await nextChunk(timer.fired).catch((error: unknown) => {
          onError(error)
          return { text: ': failed\n\n', isLast: true }
        })
        timer.cancel()
        if (chunk === null) return
        controller.enqueue(utf8.encode(chunk.text))
        if (!chunk.isLast) return
        stream.close()
        controller.close()
      },
      cancel: () => stream.close(),
    },
    { highWaterMark: 0 },
  )
}

function startTimer(durationMs: number) {
  const { promise, resolve } = Promise.withResolvers<'heartbeat'>()
  const timeout = setTimeout(() => resolve('heartbeat'), durationMs)
  return { fired: promise, cancel: () => clearTimeout(timeout) }
}
