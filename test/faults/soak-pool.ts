import { openConnection, type Connection, type HttpAnswer } from './connection.ts'

export type Pool = Awaited<ReturnType<typeof openPool>>

/** Keep-alive connections that take turns; a call waits where all are busy. Throws where nobody listens. */
export async function openPool(url: string, size: number) {
  const all = await Promise.all(Array.from({ length: size }, () => openConnection(url)))
  const idle = [...all]
  const waiting: Array<(connection: Connection) => void> = []

  const take = (): Promise<Connection> => {
    const connection = idle.shift()
    return connection ? Promise.resolve(connection) : new Promise((resolve) => waiting.push(resolve))
  }

  const giveBack = (connection: Connection) => {
    const next = waiting.shift()
    if (next) next(connection)
    else idle.push(connection)
  }

  return {
    /** Undefined where the connection ended first. */
    async ask(call: string): Promise<HttpAnswer | undefined> {
      const connection = await take()
      const answer = await connection.ask(call)
      giveBack(connection.isClosed() ? await openConnection(url).catch(() => connection) : connection)
      return answer
    },
    /** How many calls wait for a connection. */
    waiting: () => waiting.length,
    close: () => {
      for (const connection of idle) connection.close()
    },
  }
}
