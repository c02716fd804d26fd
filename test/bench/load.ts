export type Load = {
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
  statuses: Record<number, number>
}

/** An HTTP request as it goes over the wire, made before the clock runs. */
export function encodeRequest(path: string, headers: Record<string, string>, body: unknown): Uint8Array {
  const text = JSON.stringify(body)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return new TextEncoder().encode(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\n${lines.join('')}\r\n${text}`,
  )
}

/**
 * Sends each request once over keep-alive connections, the next one of a connection as soon as its answer is whole.
 *
 * @param onAnswer gets each answer's body
 */
export async function run(
  port: number,
  requests: Uint8Array[],
  connections: number,
  onAnswer: (body: string, index: number) => void = () => {},
): Promise<Load> {
  const latencies: number[] = []
  const statuses: Record<number, number> = {}
  let next = 0
  let open = connections
  const done = Promise.withResolvers<void>()
  type State = { text: string; sentAt: number; index: number }

  const fire = (socket: Bun.Socket<State>) => {
    const request = requests[next]
    if (!request) {
      socket.end()
      if (--open === 0) done.resolve()
      return
    }
    socket.data = { text: '', sentAt: performance.now(), index: next++ }
    socket.write(request)
  }

  const startedAt = performance.now()
  for (let i = 0; i < connections; i++) {
    await Bun.connect<State>({
      hostname: '127.0.0.1',
      port,
      socket: {
        open: fire,
        data(socket, bytes) {
          const state = socket.data
          state.text += bytes.toString('latin1')
          const border = state.text.indexOf('\r\n\r\n')
          if (border < 0) return
          const length = Number(/content-length: (\d+)/i.exec(state.text.slice(0, border))?.[1])
          if (state.text.length < border + 4 + length) return
          const status = Number(state.text.slice(9, 12))
          statuses[status] = (statuses[status] ?? 0) + 1
          latencies.push(performance.now() - state.sentAt)
          onAnswer(state.text.slice(border + 4), state.index)
          fire(socket)
        },
        error: (_, error) => done.reject(error),
      },
    })
  }
  await done.promise
  const seconds = (performance.now() - startedAt) / 1000
  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0
  return {
    requestsPerSecond: requests.length / seconds,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    statuses,
  }
}
