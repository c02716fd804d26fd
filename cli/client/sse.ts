/** One server-sent event; `data` is null for an event with only an `id`. */
type SseMessage = { id: string | null; event: string; data: string | null }

/**
 * Reads server-sent events (WHATWG HTML §9.2.6) until the stream ends. Comments are skipped, but count as activity.
 *
 * @param onActivity called for every chunk that arrives
 */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  onActivity: () => void,
): AsyncGenerator<SseMessage> {
  let message = emptyMessage()
  for await (const line of readLines(body, onActivity)) {
    if (line === '') {
      if (message.data !== null || message.id !== null) yield message
      message = emptyMessage()
      continue
    }
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'id' && !value.includes('\0')) message.id = value
    if (name === 'event') message.event = value
    if (name === 'data') message.data = message.data === null ? value : `${message.data}\n${value}`
  }
}

const emptyMessage = (): SseMessage => ({ id: null, event: 'message', data: null })

/** Yields lines, which end with LF, CR LF or CR; an incomplete last line is dropped. */
async function* readLines(body: ReadableStream<Uint8Array>, onActivity: () => void) {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    onActivity()
    text += decoder.decode(chunk, { stream: true })
    // A CR at the very end may be the first half of CR LF.
    const lines = text.split(/\r\n|\n|\r(?!$)/)
    text = lines.pop() ?? ''
    yield* lines
  }
}
