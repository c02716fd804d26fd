import type { TestApp } from '../../helpers/webhook-client.ts'

/** An acknowledged request: sent, or verified with its code. */
export type Acknowledged = { at: number; kind: 'sent' | 'verified'; id: string }

/**
 * Sends codes at a fixed rate and verifies every second one, until it is stopped. A call that is late does not delay the
 * next, so slow answers are not hidden.
 */
export function startLoad(url: string, app: TestApp, perSecond: number) {
  const acknowledged: Acknowledged[] = []
  let durations: number[] = []
  let refused = 0
  let count = 0
  const pending = new Set<Promise<void>>()

  async function post<T>(path: string, body: object): Promise<T | undefined> {
    try {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...app.headers },
        body: JSON.stringify(body),
      })
      const { data } = (await response.json()) as { data: T }
      if (response.ok) return data
    } catch {
      // The server is gone.
    }
    refused++
    return undefined
  }

  async function sendAndVerify(number: number) {
    const phone = `+1415${5_560_000 + (number % 1_000_000)}`
    const startedAt = performance.now()
    const sent = await post<{ requestId: string; code?: string }>('/v1/otp/send', { phone })
    durations.push(performance.now() - startedAt)
    if (!sent) return
    const { requestId, code } = sent
    acknowledged.push({ at: Date.now(), kind: 'sent', id: requestId })
    if (number % 2 === 0 || code === undefined) return
    if (await post('/v1/otp/verify', { requestId, code }))
      acknowledged.push({ at: Date.now(), kind: 'verified', id: requestId })
  }

  const startedAt = performance.now()
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond)
    while (count < due) {
      const call = sendAndVerify(count++).finally(() => pending.delete(call))
      pending.add(call)
    }
  }, 5)

  return {
    acknowledged,
    refused: () => refused,
    /** Returns the times that sends took since the last call, in milliseconds. */
    takeDurations() {
      const taken = durations
      durations = []
      return taken
    },
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
    },
  }
}

/** Returns the value that 99 % do not exceed. */
export const p99 = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Number.NaN
