import { write } from 'node:fs'

/** Writes formatted lines. Called one at a time; takes as long as the reader at the other end. */
export type Sink = (text: string) => Promise<void>

type LineQueue = {
  /** Returns immediately. If the queue is full, the line is dropped and counted. */
  push(line: string): void
  /** Resolves when every pushed line has been written or lost. */
  flush(): Promise<void>
}

/**
 * Decouples logging from writing with a bounded queue: a reader that has stopped (a paused terminal, a stuck collector)
 * costs log lines, never a request.
 *
 * @param options.lengthMax maximum number of queued characters
 * @param options.formatDroppedNotice formats the line that says how many lines are missing, written with the next batch
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
    // Batches the lines of the current event loop turn.
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
 * Writes to an open file descriptor without blocking the event loop, which `process.stdout.write` would do for files and
 * full pipes. Rejects with EPIPE when the reader has closed its end.
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
      // Another process that shares the pipe made it non-blocking, and it is full.
      else if (error.code === 'EAGAIN') setTimeout(() => resolve(0), 20)
      else reject(error)
    })
  })
}
