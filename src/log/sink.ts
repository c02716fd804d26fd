import { write } from 'node:fs'

/** Where finished lines go. One call at a time; it may take as long as the reader at the other end does. */
export type Sink = (text: string) => Promise<void>

export type LineQueue = {
  /** Returns at once. A line that finds the queue full is dropped and counted. */
  push(line: string): void
  /** Resolves when all that was pushed has been written, or lost. */
  flush(): Promise<void>
}

/**
 * Keeps the writing of lines away from those who make them: a reader that has stopped (a paused terminal, a stuck
 * collector) costs lines, never a request.
 *
 * @param options.lengthMax how many characters may wait
 * @param options.droppedLine makes the line that says how many are missing; written as soon as writing works again
 */
export function createLineQueue(
  sink: Sink,
  options: { lengthMax: number; droppedLine: (count: number) => string },
): LineQueue {
  let waiting: string[] = []
  let length = 0
  let dropped = 0
  let draining: Promise<void> | undefined

  async function drain() {
    // Lines of the same turn go out together.
    await Promise.resolve()
    while (waiting.length > 0) {
      const batch = waiting
      const missing = dropped
      waiting = []
      length = 0
      dropped = 0
      const notice = missing > 0 ? options.droppedLine(missing) : ''
      try {
        await sink(batch.join('') + notice)
      } catch {
        dropped += missing + batch.length
      }
    }
    draining = undefined
  }

  return {
    push(line) {
      if (length + line.length > options.lengthMax) {
        dropped++
        return
      }
      waiting.push(line)
      length += line.length
      draining ??= drain()
    },
    flush: async () => draining,
  }
}

/**
 * Writes to an open file descriptor without ever holding up the event loop: `process.stdout.write` would, where the
 * descriptor is a file or a full pipe. Rejects when nobody reads any more (EPIPE).
 */
export function descriptorSink(descriptor: number): Sink {
  return async (text) => {
    let rest = Buffer.from(text)
    while (rest.length > 0) rest = rest.subarray(await writeSome(descriptor, rest))
  }
}

function writeSome(descriptor: number, bytes: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, bytes, (error, written) => {
      if (!error) resolve(written)
      // Somebody else set the pipe to non-blocking, and it is full.
      else if (error.code === 'EAGAIN') setTimeout(() => resolve(0), 20)
      else reject(error)
    })
  })
}
