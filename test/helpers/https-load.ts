import { connect, type TLSSocket } from 'node:tls'

type Tally = { ok: number; lost: number; causes: Record<string, number> }

const request = 'GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n'

/**
 * Calls a server over HTTPS until `stop`: on connections that are kept, and on a new one for each call. It repeats nothing, so
 * every call that gets no answer counts.
 */
export function startHttpsLoad(port: number) {
  const [kept, fresh] = [newTally(), newTally()]
  const stopping = new AbortController()
  const work = async (tally: Tally, keeps: boolean) => {
    let socket: TLSSocket | undefined
    while (!stopping.signal.aborted) {
      let blamed = tally
      try {
        // That a new connection fails is no call lost on a kept one.
        if (!socket) {
          blamed = fresh
          socket = await open(port)
          blamed = tally
        }
        const isLast = await call(socket)
        tally.ok++
        if (!keeps || isLast) {
          socket.destroy()
          socket = undefined
        }
      } catch (error) {
        blamed.lost++
        const cause = error instanceof Error ? error.message : String(error)
        blamed.causes[cause] = (blamed.causes[cause] ?? 0) + 1
        socket?.destroy()
        socket = undefined
      }
    }
    socket?.destroy()
  }
  const running = Array.from({ length: 4 }, () => [work(kept, true), work(fresh, false)]).flat()
  return {
    async stop() {
      stopping.abort()
      await Promise.all(running)
      return { kept, fresh }
    },
  }
}

const newTally = (): Tally => ({ ok: 0, lost: 0, causes: {} })

function open(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
      () => resolve(socket),
    )
    // Stays: a connection that is reset between two calls would otherwise end the test.
    socket.on('error', (error) => reject(new Error(`connect: ${error.message}`)))
    socket.once('close', () => reject(new Error('connect: closed')))
  })
}

/** Sends one request and reads its response. @returns whether the server closes the connection after it */
function call(socket: TLSSocket): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let text = ''
    const end = (settle: () => void) => {
      socket.off('data', onData).off('error', onError).off('close', onClose)
      settle()
    }
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const headEnd = text.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1])
      if (text.length < headEnd + 4 + length) return
      if (text.startsWith('HTTP/1.1 200')) end(() => resolve(/\r\nconnection: close/i.test(text)))
      else end(() => reject(new Error(text.slice(0, 40))))
    }
    const onError = (error: Error) => end(() => reject(error))
    const onClose = () => end(() => reject(new Error('closed')))
    socket.on('data', onData).on('error', onError).on('close', onClose)
    socket.write(request)
  })
}
