import { openConnection, type Connection, type HttpResponse } from './connection.ts'

export type Pool = Awaited<ReturnType<typeof openPool>>

/** Keep-alive connections that take turns; a call waits where all are busy. Throws where nobody listens. */
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
    /** Undefined where the connection ended first. */
    async send(call: string): Promise<HttpResponse | undefined> {
      const connection = await acquire()
      const response = await connection.send(call)
      release(connection.isClosed() ? await openConnection(url).catch(() => connection) : connection)
      return response
    },
    /** How many calls wait for a connection. */
    waiting: () => waiting.length,
    close: () => {
      for (const connection of idle) connection.close()
    },
  }
}
