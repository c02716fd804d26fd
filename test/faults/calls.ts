import { isRecord } from '../../src/shared/json.ts'
import type { TestApp } from '../helpers/webhook-client.ts'

/** Response to a call, or the lack of one. */
export type CallResult = {
  /** 0 if the connection ended or the timeout passed before a response arrived. */
  status: number
  ms: number
  headers: Headers
  data: Record<string, unknown>
  error: Record<string, unknown>
}

type CallOptions = { headers?: Record<string, string>; body?: object; timeoutMs?: number }

/** Calls the API on a new connection. Never rejects: a missing response is a result here. */
export async function callApi(method: string, url: string, options: CallOptions = {}): Promise<CallResult> {
  const { headers = {}, body, timeoutMs = 20_000 } = options
  const startedAt = performance.now()
  const elapsedMs = () => Math.round((performance.now() - startedAt) * 10) / 10
  try {
    const response = await fetch(url, {
      method,
      headers: { connection: 'close', ...(body && { 'content-type': 'application/json' }), ...headers },
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'manual',
      ...(body && { body: JSON.stringify(body) }),
    })
    const responseBody: unknown = await response.json().catch(() => ({}))
    const readObject = (name: 'data' | 'error') =>
      isRecord(responseBody) && isRecord(responseBody[name]) ? responseBody[name] : {}
    return {
      status: response.status,
      ms: elapsedMs(),
      headers: response.headers,
      data: readObject('data'),
      error: readObject('error'),
    }
  } catch {
    return { status: 0, ms: elapsedMs(), headers: new Headers(), data: {}, error: {} }
  }
}

let phones = 0

/** Returns a phone number that no other call has used. */
export const newPhone = () => `+1415${String(2_000_000 + (phones++ % 7_000_000))}`

export const send = (url: string, { headers }: Pick<TestApp, 'headers'>, phone = newPhone()) =>
  callApi('POST', `${url}/v1/otp/send`, { headers, body: { phone } })

export const verify = (
  url: string,
  { headers }: Pick<TestApp, 'headers'>,
  requestId: unknown,
  code: unknown,
) => callApi('POST', `${url}/v1/otp/verify`, { headers, body: { requestId, code } })

/** Polls the liveness probe until it is stopped. */
export function watchHealth(url: string) {
  const results: CallResult[] = []
  const controller = new AbortController()
  const loop = (async () => {
    while (!controller.signal.aborted) {
      results.push(await callApi('GET', `${url}/v1/health`, { timeoutMs: 5_000 }))
      await Bun.sleep(20)
    }
  })()
  return async () => {
    controller.abort()
    await loop
    const times = results.map(({ ms }) => ms).toSorted((a, b) => a - b)
    return {
      requests: results.length,
      failed: results.filter(({ status }) => status !== 200).length,
      p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
      longestMs: times.at(-1) ?? 0,
    }
  }
}

/** Counts the statuses: `201 × 40, 503 × 2`. */
export function countStatuses(results: readonly CallResult[]): string {
  const counts = new Map<number, number>()
  for (const { status } of results) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts]
    .toSorted(([a], [b]) => a - b)
    .map(([status, count]) => `${status} × ${count}`)
    .join(', ')
}

/** Polls the condition for `ms` milliseconds. Returns whether it became true. */
export async function waitUntil(ms: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + ms
  for (;;) {
    if (await condition()) return true
    if (performance.now() >= deadline) return false
    await Bun.sleep(50)
  }
}

/** Returns the sentence as a violation if the condition is not met. */
export const violationUnless = (isMet: boolean, sentence: string): string[] => (isMet ? [] : [sentence])
