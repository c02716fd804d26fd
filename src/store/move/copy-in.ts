import type { Client } from 'pg'

/** Bytes of rows that are sent at a time. */
const chunkBytes = 256 * 1024
/** Bytes that may wait in the socket before the reader pauses. */
const backlogBytes = 4 * 1024 * 1024

/** The part of `pg`'s connection that COPY uses; its types lack it. */
type Connection = {
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
  stream: {
    writableLength: number
    on(event: 'drain' | 'close', callback: () => void): void
    off(event: 'drain' | 'close', callback: () => void): void
  }
}

/**
 * Loads rows with COPY, which takes a fraction of the time of inserts. `pg` knows the messages of the protocol, but has
 * no interface for them: this is one of its own queries.
 *
 * @param table with its columns, quoted as needed
 * @param lines yields lines of COPY's text format, with their line breaks; may be endless in length, is read once
 * @throws the error of PostgreSQL, or of `lines`
 */
export function copyIn(client: Client, table: string, lines: Iterable<string>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let failure: unknown
  let isEnded = false

  async function send(connection: Connection) {
    let text = ''
    const flush = async () => {
      connection.sendCopyFromChunk(Buffer.from(text))
      text = ''
      if (connection.stream.writableLength > backlogBytes) {
        const drained = Promise.withResolvers<void>()
        for (const event of ['drain', 'close'] as const) connection.stream.on(event, drained.resolve)
        await drained.promise
        for (const event of ['drain', 'close'] as const) connection.stream.off(event, drained.resolve)
      }
    }
    for (const line of lines) {
      text += line
      if (text.length < chunkBytes) continue
      await flush()
      // The server refused a row, or the connection is lost.
      if (isEnded) return
    }
    if (text !== '') await flush()
    if (!isEnded) connection.endCopyFrom()
  }

  const end = (error?: unknown) => {
    isEnded = true
    failure ??= error
  }
  client.query({
    submit: (connection: Connection) => connection.query(`copy ${table} from stdin`),
    handleCopyInResponse(connection: Connection) {
      send(connection).catch((error: unknown) => {
        failure = error
        if (!isEnded) connection.sendCopyFail('the rows cannot be read')
      })
    },
    handleError(error: unknown) {
      end(error)
      // The server sends "ready" after it, unless the connection is lost.
      reject(failure instanceof Error ? failure : error)
    },
    handleCommandComplete: () => end(),
    handleReadyForQuery() {
      if (failure === undefined) resolve()
    },
    handleRowDescription() {},
    handleDataRow() {},
    handleEmptyQuery() {},
    handlePortalSuspended() {},
    // `pg` has no type for a query that is not its own.
  } as never)
  return promise
}
