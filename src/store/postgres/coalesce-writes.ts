import type { Duplex } from 'node:stream'

/**
 * Makes a stream send by one system call what is written to it in one turn. Statements that are pipelined would cost one
 * each here, and wake the server as often.
 */
export function coalesceWrites(stream: Duplex): void {
  const send = stream.write.bind(stream)
  let waiting: Uint8Array[] = []

  function flush(): void {
    if (waiting.length === 0) return
    const chunks = waiting
    waiting = []
    send(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
  }

  /** @param onSent called when it is sent: it is the last one, which ends the connection */
  function write(chunk: Uint8Array, onSent?: () => void): boolean {
    if (onSent) {
      flush()
      return send(chunk, onSent)
    }
    if (waiting.length === 0) process.nextTick(flush)
    waiting.push(chunk)
    return true
  }
  // The driver calls it in these two ways only.
  stream.write = write as typeof stream.write
}
