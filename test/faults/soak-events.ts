import { Webhook } from 'standardwebhooks'
import type { TestApp } from '../helpers/webhook-client.ts'

type EventBody = { type: string; requestId?: string | null; data?: { requestId: string } }

/** Pairs what callers were told with what arrives, in whichever order the two come, and however often. */
export function createPairs() {
  /** How many more times it was told than it arrived; nothing where both are the same. */
  const open = new Map<string, number>()
  const count = { told: 0, arrived: 0 }
  const add = (key: string, change: number) => {
    const balance = (open.get(key) ?? 0) + change
    if (balance === 0) open.delete(key)
    else open.set(key, balance)
  }
  const sum = (sign: number) => [...open.values()].reduce((all, one) => all + Math.max(0, one * sign), 0)
  return {
    count,
    tell(type: string, requestId: string) {
      count.told++
      add(`${type} ${requestId}`, 1)
    },
    arrive(type: string, requestId: string) {
      count.arrived++
      add(`${type} ${requestId}`, -1)
    },
    /** Told and not arrived. */
    missing: () => sum(1),
    /** Arrived without a caller who was told, or more often. */
    surplus: () => sum(-1),
  }
}

export type Pairs = ReturnType<typeof createPairs>

/** For the endpoints of all applications, by their number in the path. */
export function startSoakReceiver(apps: readonly TestApp[], pairs: Pairs) {
  let forged = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 120,
    async fetch(request) {
      const text = await request.text()
      const app = apps[Number(new URL(request.url).pathname.slice(1))]
      try {
        new Webhook(app?.webhookSecret ?? '').verify(text, Object.fromEntries(request.headers))
      } catch {
        forged++
      }
      const { type, data }: EventBody = JSON.parse(text)
      pairs.arrive(type, data?.requestId ?? '')
      return new Response('ok')
    },
  })
  return { url: server.url.href, forged: () => forged, stop: () => server.stop(true) }
}

/**
 * Reads the log as it grows, and comes back to its place when its token has run out.
 *
 * @param bearer with a token that is valid now
 */
export function readStream(url: string, bearer: () => Record<string, string>, pairs: Pairs) {
  const ending = new AbortController()
  const broken: string[] = []
  const count = { opened: 0 }
  const types = 'otp.sent,otp.verified'
  let place = ''

  async function readOnce() {
    const headers = { ...bearer(), ...(place !== '' && { 'last-event-id': place }) }
    const response = await fetch(`${url}/v1/logs/stream?type=${types}`, { headers, signal: ending.signal })
    count.opened++
    if (!response.ok || !response.body) throw new Error(`the stream was answered ${response.status}`)
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of response.body) {
      text += decoder.decode(bytes, { stream: true })
      const messages = text.split('\n\n')
      text = messages.pop() ?? ''
      for (const message of messages) take(message)
    }
  }

  function take(message: string) {
    const lines = message.split('\n')
    const valueOf = (field: string) =>
      lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2)
    place = valueOf('id') ?? place
    const data = valueOf('data')
    if (data === undefined) return
    if (valueOf('event') !== 'end') {
      const { type, requestId }: EventBody = JSON.parse(data)
      pairs.arrive(type, requestId ?? '')
    } else if (!data.includes('token_expired')) broken.push(`the stream was ended: ${data}`)
  }

  const ended = (async () => {
    while (!ending.signal.aborted) {
      await readOnce().catch((error: unknown) => {
        if (!ending.signal.aborted) broken.push(String(error))
      })
      if (!ending.signal.aborted) await Bun.sleep(100)
    }
  })()

  return {
    broken,
    count,
    async stop() {
      ending.abort()
      await ended
    },
  }
}
