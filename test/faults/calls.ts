import type { TestApp } from '../helpers/webhook-client.ts'

/** An answer, or what came instead of one. */
export type Answer = {
  /** 0 where the connection ended, or the time did, before an answer came. */
  status: number
  ms: number
  headers: Headers
  data: Record<string, unknown>
  error: Record<string, unknown>
}

type Wishes = { headers?: Record<string, string>; body?: object; timeoutMs?: number }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Never rejects: that there is no answer is an answer here. Each call has a connection of its own. */
export async function ask(method: string, url: string, wishes: Wishes = {}): Promise<Answer> {
  const { headers = {}, body, timeoutMs = 20_000 } = wishes
  const startedAt = performance.now()
  const since = () => Math.round((performance.now() - startedAt) * 10) / 10
  try {
    const response = await fetch(url, {
      method,
      headers: { connection: 'close', ...(body && { 'content-type': 'application/json' }), ...headers },
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'manual',
      ...(body && { body: JSON.stringify(body) }),
    })
    const answer: unknown = await response.json().catch(() => ({}))
    const part = (name: 'data' | 'error') => (isRecord(answer) && isRecord(answer[name]) ? answer[name] : {})
    return {
      status: response.status,
      ms: since(),
      headers: response.headers,
      data: part('data'),
      error: part('error'),
    }
  } catch {
    return { status: 0, ms: since(), headers: new Headers(), data: {}, error: {} }
  }
}

let phones = 0

/** A number that no other call has had. */
export const newPhone = () => `+1415${String(2_000_000 + (phones++ % 7_000_000))}`

export const send = (url: string, { headers }: Pick<TestApp, 'headers'>, phone = newPhone()) =>
  ask('POST', `${url}/v1/otp/send`, { headers, body: { phone } })

export const verify = (
  url: string,
  { headers }: Pick<TestApp, 'headers'>,
  requestId: unknown,
  code: unknown,
) => ask('POST', `${url}/v1/otp/verify`, { headers, body: { requestId, code } })

/** Asks for the server's health all the time, until it is stopped. */
export function watchHealth(url: string, everyMs = 20) {
  const answers: Answer[] = []
  const ending = new AbortController()
  const ended = (async () => {
    while (!ending.signal.aborted) {
      answers.push(await ask('GET', `${url}/v1/health`, { timeoutMs: 5_000 }))
      await Bun.sleep(everyMs)
    }
  })()
  return async () => {
    ending.abort()
    await ended
    const times = answers.map(({ ms }) => ms).toSorted((a, b) => a - b)
    return {
      asked: answers.length,
      failed: answers.filter(({ status }) => status !== 200).length,
      p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
      longestMs: times.at(-1) ?? 0,
    }
  }
}

/** How often each status was answered: `201 × 40, 503 × 2`. */
export function countStatuses(answers: readonly Answer[]): string {
  const counts = new Map<number, number>()
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts]
    .toSorted(([a], [b]) => a - b)
    .map(([status, count]) => `${status} × ${count}`)
    .join(', ')
}

/** Whether it becomes true within that time. */
export async function within(ms: number, isTrue: () => boolean | Promise<boolean>): Promise<boolean> {
  const endsAt = performance.now() + ms
  for (;;) {
    if (await isTrue()) return true
    if (performance.now() >= endsAt) return false
    await Bun.sleep(50)
  }
}

/** The sentences whose condition does not hold. */
export const unless = (kept: boolean, sentence: string): string[] => (kept ? [] : [sentence])
