import { Webhook } from 'standardwebhooks'
import type { TestApp } from '../helpers/webhook-client.ts'

type EventBody = { type: string; requestId?: string | null; data?: { requestId: string } }

/** Matches acknowledged events with arrived ones, in any order and number. */
export function createEventReconciler() {
  /** Acknowledgements minus arrivals of each event. Balanced events are removed. */
  const openBalances = new Map<string, number>()
  const count = { acknowledged: 0, arrived: 0 }
  const add = (key: string, change: number) => {
    const balance = (openBalances.get(key) ?? 0) + change
    if (balance === 0) openBalances.delete(key)
    else openBalances.set(key, balance)
  }
  const sumBalances = (sign: number) =>
    [...openBalances.values()].reduce((total, one) => total + Math.max(0, one * sign), 0)
  return {
    count,
    acknowledge(type: string, requestId: string) {
      count.acknowledged++
      add(`${type} ${requestId}`, 1)
    },
    arrive(type: string, requestId: string) {
      count.arrived++
      add(`${type} ${requestId}`, -1)
    },
    /** Counts acknowledged events that have not arrived. */
    missing: () => sumBalances(1),
    /** Counts events that arrived without an acknowledgement, or too often. */
    surplus: () => sumBalances(-1),
  }
}

export type EventReconciler = ReturnType<typeof createEventReconciler>

/** Starts one receiver for the endpoints of all applications, by their number in the path. */
export function startSoakReceiver(apps: readonly TestApp[], reconciler: EventReconciler) {
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
      reconciler.arrive(type, data?.requestId ?? '')
      return new Response('ok')
    },
  })
  return { url: server.url.href, forged: () => forged, stop: () => server.stop(true) }
}

/**
 * Streams the log, and resumes from its position when the token has expired.
 *
 * @param bearer returns headers with a currently valid token
 */
export function followLog(url: string, bearer: () => Record<string, string>, reconciler: EventReconciler) {
  const controller = new AbortController()
  const violations: string[] = []
  const count = { opened: 0 }
  const types = 'otp.sent,otp.verified'
  let lastEventId = ''

  async function readConnection() {
    const headers = { ...bearer(), ...(lastEventId !== '' && { 'last-event-id': lastEventId }) }
    const response = await fetch(`${url}/v1/logs/stream?type=${types}`, {
      headers,
      signal: controller.signal,
    })
    count.opened++
    if (!response.ok || !response.body) throw new Error(`the stream responded ${response.status}`)
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of response.body) {
      text += decoder.decode(bytes, { stream: true })
      const messages = text.split('\n\n')
      text = messages.pop() ?? ''
      for (const message of messages) handleMessage(message)
    }
  }

  function handleMessage(message: string) {
    const lines = message.split('\n')
    const fieldValue = (field: string) =>
      lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2)
    lastEventId = fieldValue('id') ?? lastEventId
    const data = fieldValue('data')
    if (data === undefined) return
    if (fieldValue('event') !== 'end') {
      const { type, requestId }: EventBody = JSON.parse(data)
      reconciler.arrive(type, requestId ?? '')
    } else if (!data.includes('token_expired')) violations.push(`the server ended the stream: ${data}`)
  }

  const loop = (async () => {
    while (!controller.signal.aborted) {
      await readConnection().catch((error: unknown) => {
        if (!controller.signal.aborted) violations.push(String(error))
      })
      if (!controller.signal.aborted) await Bun.sleep(100)
    }
  })()

  return {
    violations,
    count,
    async stop() {
      controller.abort()
      await loop
    },
  }
}
