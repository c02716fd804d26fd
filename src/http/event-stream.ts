import type { LogEntry } from '../domain/model/log-entry.ts'
import type { LogStream } from '../domain/log/stream.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Timers } from '../world/world.ts'

/** Less than the 30 s after which Bun closes an idle connection. */
const heartbeatMsDefault = 10_000
/** Delay before a browser reconnects. */
const retryMs = 1_000

type EventStreamNeeds = {
  clock: Clock
  timers: Timers
  present(entry: LogEntry): object
  onError(error: unknown): void
  heartbeatMs?: number | undefined
}

/**
 * Encodes a log stream as server-sent events (WHATWG HTML §9.2). Cursor-based and pull-based: entries are read when the
 * connection accepts more, so a stalled reader costs a cursor and no buffer.
 *
 * - Each entry has `id` and `data` (JSON) but no `event`, so that every client receives it as a message.
 * - `id` alone is the position to resume from, which clients store without dispatching an event: at the start, and after
 *   entries that the filter left out.
 * - `: heartbeat` is sent when nothing else was sent for the heartbeat interval.
 * - `event: end` with `{"reason"}` precedes an end that the server initiates.
 */
export function createEventStream(
  stream: LogStream,
  { clock, timers, present, onError, heartbeatMs = heartbeatMsDefault }: EventStreamNeeds,
): ReadableStream<Uint8Array> {
  const utf8 = new TextEncoder()
  let lastSentPosition: string | undefined

  /** Waits for the next text to send. Null if the client disconnected. */
  async function nextChunk(
    heartbeat: Promise<'heartbeat'>,
  ): Promise<{ text: string; isLast: boolean } | null> {
    for (;;) {
      const { entries, position, hasMore: isFull, endReason: end } = await stream.read()
      if (end === 'closed') return null
      if (end !== null)
        return { text: `event: end\ndata: ${JSON.stringify({ reason: end })}\n\n`, isLast: true }
      // Yields between full pages, so that a long log does not delay other requests.
      if (isFull) await timers.nextTurn()
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
        const timer = startTimer(timers, Math.min(heartbeatMs, Math.max(0, stream.endsAt - clock.now())))
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

function startTimer(timers: Timers, durationMs: number) {
  const { promise, resolve } = Promise.withResolvers<'heartbeat'>()
  const timeout = timers.setTimeout(() => resolve('heartbeat'), durationMs)
  return { fired: promise, cancel: () => timers.clearTimeout(timeout) }
}
