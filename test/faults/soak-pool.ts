import { openConnection, type Connection, type HttpResponse } from './connection.ts'

export type Pool = Awaited<ReturnType<typeof openPool>>

/** Opens a pool of keep-alive connections. A call waits while all are busy. @throws Error if nothing listens */
export async function openPool(url: string, size: number) {
  const connections = await Promise.all(Array.from({ length: size }, () => openConnection(url)))
  const idle = [...connections]
  const waiting: Array<(connection: Connection) => void> = []

  const acquire = (): Promise<Connection> => {
    const connection = idle.shift()
    return connection ? Promise.resolve(connection) : new Promise((resolve) => waiting.push(resolve))
  }

  const release = (connection: Connection) => {
    const next = waiting.shift()
    if (next) next(connection)
    else idle.push(connection)
  }

  return {
    /** Sends a call. Undefined if the connection ended before the response. */
    async send(call: string): Promise<HttpResponse | undefined> {
      const connection = await acquire()
      const response = await connection.send(call)
      release(connection.isClosed() ? await openConnection(url).catch(() => connection) : connection)
      return response
    },
    /** Number of calls that wait for a connection. */
    waiting: () => waiting.length,
    close: () => {
      for (const connection of idle) connection.close()
    },
  }
}
