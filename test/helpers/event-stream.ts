/** One block of a stream of server-sent events: an event, a bare `id` or a comment. */
type StreamMessage = { id?: string; event?: string; data?: string; comment?: string }

/** Reads a stream of server-sent events, one block at a time, as a client would. */
export function readEventStream(body: ReadableStream<Uint8Array> | null) {
  if (!body) throw new Error('the response has no body')
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''

  const stream = {
    /** Reads the next block. Undefined at the end. */
    async next(): Promise<StreamMessage | undefined> {
      for (;;) {
        const end = text.indexOf('\n\n')
        if (end !== -1) {
          const block = text.slice(0, end)
          text = text.slice(end + 2)
          return parseMessage(block)
        }
        const { done, value } = await reader.read()
        if (done) return undefined
        text += decoder.decode(value, { stream: true })
      }
    },
    /** Reads the ids of the next log entries and skips other blocks. */
    async nextEntryIds(count: number): Promise<string[]> {
      const ids: string[] = []
      while (ids.length < count) {
        const message = await stream.next()
        if (!message) throw new Error(`the stream ended after ${ids.length} of ${count} entries`)
        if (message.data !== undefined && message.event === undefined) ids.push(message.id ?? '')
      }
      return ids
    },
    cancel: () => reader.cancel(),
  }
  return stream
}

function parseMessage(block: string): StreamMessage {
  const message: StreamMessage = {}
  for (const line of block.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? []
    if (name === '') message.comment = value
    if (name === 'id') message.id = value
    if (name === 'event') message.event = value
    if (name === 'data') message.data = value
  }
  return message
}
