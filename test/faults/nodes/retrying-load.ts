import type { TestApp } from '../../helpers/webhook-client.ts'
import type { PostgresServer } from '../../helpers/postgres-server.ts'
import { callApi, newPhone, waitUntil, type CallResult } from '../calls.ts'

const callTimeoutMs = 10_000
/** Longer than any of the faults. */
const answerMsMax = 60_000

/** Request that a caller has heard of. */
export type Tracked = { id: string; isVerified: boolean }

/** Counts what was acknowledged and is not in the database. */
export async function countLost(postgres: PostgresServer, tracked: ReadonlyMap<string, Tracked>) {
  const rows = await postgres.query<{ id: string; status: string }>(
    'select id, status from otp_requests where id = any($1)',
    'otpd',
    [[...tracked.keys()]],
  )
  const stored = new Map(rows.map(({ id, status }) => [id, status]))
  const requests = [...tracked.values()]
  return {
    lost: requests.filter(({ id }) => !stored.has(id)).length,
    unverified: requests.filter(({ id, isVerified }) => isVerified && stored.get(id) !== 'verified').length,
  }
}

/** Sends and verifies through the balancer. A call without an answer, or with 503, is repeated with the same key. */
export function startRetryingLoad(url: string, apps: readonly TestApp[], callers: number) {
  const tracked = new Map<string, Tracked>()
  const violations: string[] = []
  const count = { retries: 0, done: 0 }
  const controller = new AbortController()

  /** @returns the first answer that is neither 502, 503 nor 504, or the last one within a minute */
  async function repeat(call: () => Promise<CallResult>): Promise<{ answer: CallResult; tries: number }> {
    const startedAt = performance.now()
    for (let tries = 1; ; tries++) {
      const answer = await call()
      const isLate = performance.now() - startedAt > answerMsMax
      if (isLate || ![0, 502, 503, 504].includes(answer.status)) return { answer, tries }
      count.retries++
      await Bun.sleep(50)
    }
  }

  async function run(caller: number) {
    for (let i = caller; !controller.signal.aborted; i++) {
      const app = apps[i % apps.length]
      if (!app) throw new Error('there is no application')
      const headers = { ...app.headers, 'idempotency-key': crypto.randomUUID() }
      const body = { phone: newPhone() }
      const post = (path: string, content: object, callHeaders: Record<string, string> = headers) =>
        repeat(() =>
          callApi('POST', `${url}/v1/otp/${path}`, {
            headers: callHeaders,
            body: content,
            timeoutMs: callTimeoutMs,
          }),
        )
      const { answer: sent } = await post('send', body)
      // A node that was killed between the request and its answer has left the key without one.
      if (sent.status === 409) continue
      if (sent.status !== 201) {
        violations.push(`a send was ${sent.status} ${String(sent.error['code'])}`)
        continue
      }
      const { requestId, code } = sent.data
      const request = { id: String(requestId), isVerified: false }
      if (tracked.has(request.id)) violations.push(`${request.id} was given to two callers`)
      tracked.set(request.id, request)
      count.done++
      await verifyTwice(request, app, code, post)
    }
  }

  /** Verifies a code, and then again: exactly one of the two may succeed. */
  async function verifyTwice(
    request: Tracked,
    app: TestApp,
    code: unknown,
    post: (path: string, content: object, headers: Record<string, string>) => ReturnType<typeof repeat>,
  ) {
    const body = { requestId: request.id, code }
    const { answer: first, tries } = await post('verify', body, app.headers)
    const { answer: second } = await post('verify', body, app.headers)
    // An earlier try may have verified it without an answer.
    const isFirstExpected = first.status === 200 || (first.status === 409 && tries > 1)
    if (!isFirstExpected) violations.push(`a verification was ${first.status} ${String(first.error['code'])}`)
    if (second.status !== 409) violations.push(`a second verification was ${second.status}`)
    request.isVerified = true
  }

  const ended = Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)))
  return {
    tracked,
    violations,
    count,
    /** Waits until so many more requests were sent, at most 20 s. */
    async waitFor(more: number) {
      const target = count.done + more
      await waitUntil(20_000, () => count.done >= target)
    },
    async stop() {
      controller.abort()
      await ended
    },
  }
}
