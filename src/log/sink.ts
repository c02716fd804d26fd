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
  options: { lengthMax: number; formatDroppedNotice: (count: number) => string },
): LineQueue {
  let pendingLines: string[] = []
  let pendingLength = 0
  let droppedCount = 0
  let draining: Promise<void> | undefined

  async function drain() {
    // Lines of the same turn go out together.
    await Promise.resolve()
    while (pendingLines.length > 0) {
      const batch = pendingLines
      const droppedBefore = droppedCount
      pendingLines = []
      pendingLength = 0
      droppedCount = 0
      const notice = droppedBefore > 0 ? options.formatDroppedNotice(droppedBefore) : ''
      try {
        await sink(batch.join('') + notice)
      } catch {
        droppedCount += droppedBefore + batch.length
      }
    }
    draining = undefined
  }

  return {
    push(line) {
      if (pendingLength + line.length > options.lengthMax) {
        droppedCount++
        return
      }
      pendingLines.push(line)
      pendingLength += line.length
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
    let remaining = Buffer.from(text)
    while (remaining.length > 0) remaining = remaining.subarray(await writeSome(descriptor, remaining))
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
