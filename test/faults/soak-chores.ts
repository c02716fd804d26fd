import { logIn, type WebhookClient } from '../helpers/webhook-client.ts'
import { encodeCall, openConnection, type HttpAnswer } from './connection.ts'
import type { Call } from './soak-calls.ts'

export type Errors = ReturnType<typeof createErrors>

/** Answers that were not those expected, by what was called and what came. */
export function createErrors() {
  let recent = new Map<string, number>()
  let total = 0
  return {
    /** @returns whether it was the expected one */
    judge({ kind, expected, done }: Call, answer: HttpAnswer | undefined): boolean {
      // Of a server of ours, whose answers have this shape.
      const body = JSON.parse(answer?.body || '{}') as {
        data?: Record<string, unknown>
        error?: { code: string }
      }
      const seen = answer ? (body.error?.code ?? String(answer.status)) : 'no answer'
      if (seen === expected) {
        done?.(body.data ?? {})
        return true
      }
      const what = `${kind}: ${answer?.status ?? ''} ${seen}`
      recent.set(what, (recent.get(what) ?? 0) + 1)
      total++
      return false
    },
    /** Those since the last time it was asked, in words. */
    take() {
      const words = [...recent].map(([what, times]) => `${times} × ${what}`)
      recent = new Map()
      return words
    },
    total: () => total,
  }
}

const credentials = { secret: 'x-client-secret', api: 'x-api-key' } as const
const rotateEveryMs = 5_000
/** Two thirds of a token's life. */
const logInEveryMs = 10 * 60_000

/**
 * What happens now and then: a credential of an application that nobody else uses is rotated, so that the old one is
 * refused and the new one is not; and the developer logs in again.
 *
 * @param onLogIn given the new login
 */
export async function startChores(
  url: string,
  errors: Errors,
  first: WebhookClient,
  onLogIn: (client: WebhookClient) => void,
) {
  const app = await first.createApplication('Rotated')
  const ending = new AbortController()
  const endsNow = new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
  const count = { rotated: 0, loggedIn: 1 }
  let client = first
  let loggedInAt = performance.now()

  async function call(wanted: Call): Promise<boolean> {
    const connection = await openConnection(url)
    const { method, path, headers, body } = wanted
    const answer = await connection.ask(encodeCall(method, path, { ...headers, connection: 'close' }, body))
    connection.close()
    return errors.judge(wanted, answer)
  }

  const verifyNothing = (which: string, headers: Record<string, string>, expected: string) =>
    call({
      kind: `/v1/otp/verify with the ${which}`,
      method: 'POST',
      path: '/v1/otp/verify',
      headers,
      body: { requestId: 'otp_00000000000000000000000000', code: '000000' },
      expected,
    })

  async function rotate(type: keyof typeof credentials): Promise<void> {
    const before = { ...app.headers }
    await call({
      kind: `rotate ${type}`,
      method: 'POST',
      path: `/v1/applications/${app.id}/rotate/${type}`,
      headers: { authorization: `Bearer ${client.token}` },
      expected: '200',
      done: ({ value }) => (app.headers[credentials[type]] = String(value)),
    })
    await verifyNothing(`old ${type}`, before, 'UNAUTHENTICATED')
    await verifyNothing(`new ${type}`, app.headers, 'NOT_FOUND')
    count.rotated++
  }

  const ended = (async () => {
    while (!ending.signal.aborted) {
      await rotate(count.rotated % 2 === 0 ? 'secret' : 'api')
      if (performance.now() - loggedInAt > logInEveryMs) {
        client = await logIn(url)
        loggedInAt = performance.now()
        count.loggedIn++
        onLogIn(client)
      }
      await Promise.race([Bun.sleep(rotateEveryMs), endsNow])
    }
  })()

  return {
    count,
    async stop() {
      ending.abort()
      await ended
    },
  }
}
