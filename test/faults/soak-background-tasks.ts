import { logIn, type WebhookClient } from '../helpers/webhook-client.ts'
import { encodeRequest, openConnection, type HttpResponse } from './connection.ts'
import type { ExpectedCall } from './soak-calls.ts'

export type ErrorCounter = ReturnType<typeof createErrorCounter>

/** Counts unexpected responses by call and outcome. */
export function createErrorCounter() {
  let recent = new Map<string, number>()
  let total = 0
  return {
    /** Returns whether the response was the expected one. */
    check({ kind, expected, onExpected: done }: ExpectedCall, response: HttpResponse | undefined): boolean {
      // The server under test answers in this shape.
      const body = JSON.parse(response?.body || '{}') as {
        data?: Record<string, unknown>
        error?: { code: string }
      }
      const outcome = response ? (body.error?.code ?? String(response.status)) : 'no answer'
      if (outcome === expected) {
        done?.(body.data ?? {})
        return true
      }
      const label = `${kind}: ${response?.status ?? ''} ${outcome}`
      recent.set(label, (recent.get(label) ?? 0) + 1)
      total++
      return false
    },
    /** Returns the errors since the last call, as text. */
    takeSummary() {
      const lines = [...recent].map(([label, times]) => `${times} × ${label}`)
      recent = new Map()
      return lines
    },
    total: () => total,
  }
}

const credentials = { secret: 'x-client-secret', api: 'x-api-key' } as const
const rotateEveryMs = 5_000
/** Two thirds of the lifetime of a token. */
const logInEveryMs = 10 * 60_000

/**
 * Starts occasional tasks: rotates a credential of a separate application and checks that the old one is refused and
 * the new one accepted, and logs the developer in again.
 *
 * @param onLogIn called with the new login
 */
export async function startBackgroundTasks(
  url: string,
  errors: ErrorCounter,
  initialClient: WebhookClient,
  onLogIn: (client: WebhookClient) => void,
) {
  const app = await initialClient.createApplication('Rotated')
  const controller = new AbortController()
  const aborted = new Promise((resolve) => controller.signal.addEventListener('abort', resolve))
  const count = { rotated: 0, loggedIn: 1 }
  let client = initialClient
  let loggedInAt = performance.now()

  async function call(expectedCall: ExpectedCall): Promise<boolean> {
    const connection = await openConnection(url)
    const { method, path, headers, body } = expectedCall
    const response = await connection.send(
      encodeRequest(method, path, { ...headers, connection: 'close' }, body),
    )
    connection.close()
    return errors.check(expectedCall, response)
  }

  const verifyNothing = (credential: string, headers: Record<string, string>, expected: string) =>
    call({
      kind: `/v1/otp/verify with the ${credential}`,
      method: 'POST',
      path: '/v1/otp/verify',
      headers,
      body: { requestId: 'otp_00000000000000000000000000', code: '000000' },
      expected,
    })

  async function rotate(type: keyof typeof credentials): Promise<void> {
    const oldHeaders = { ...app.headers }
    await call({
      kind: `rotate ${type}`,
      method: 'POST',
      path: `/v1/applications/${app.id}/rotate/${type}`,
      headers: { authorization: `Bearer ${client.token}` },
      expected: '200',
      onExpected: ({ value }) => (app.headers[credentials[type]] = String(value)),
    })
    await verifyNothing(`old ${type}`, oldHeaders, 'UNAUTHENTICATED')
    await verifyNothing(`new ${type}`, app.headers, 'NOT_FOUND')
    count.rotated++
  }

  const loop = (async () => {
    while (!controller.signal.aborted) {
      await rotate(count.rotated % 2 === 0 ? 'secret' : 'api')
      if (performance.now() - loggedInAt > logInEveryMs) {
        client = await logIn(url)
        loggedInAt = performance.now()
        count.loggedIn++
        onLogIn(client)
      }
      await Promise.race([Bun.sleep(rotateEveryMs), aborted])
    }
  })()

  return {
    count,
    async stop() {
      controller.abort()
      await loop
    },
  }
}
