import type { Json } from './json.ts'

export type ApiResponse = { status: number; body: Json }

export type Call = { method?: string; headers?: Record<string, string>; body?: Json | URLSearchParams }

/** Calls the API. The user agent is constant because the audit trail keeps it. */
export async function callApi(url: string, path: string, call: Call = {}): Promise<ApiResponse> {
  const { method = 'GET', headers = {}, body } = call
  const isForm = body instanceof URLSearchParams
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      'user-agent': 'otpd-upgrade',
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Json }
}

/** Requests tokens from the built-in identity provider. */
export const requestTokens = (url: string, form: Record<string, string>): Promise<ApiResponse> =>
  callApi(url, '/v1/auth/token', { method: 'POST', body: new URLSearchParams(form) })

/**
 * Polls until the value satisfies `fits`.
 *
 * @throws Error with the last value, after `timeoutMs`
 */
export async function poll<T>(
  get: () => Promise<T>,
  fits: (value: T) => boolean,
  goal: string,
  { timeoutMs = 20_000, everyMs = 50 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const end = performance.now() + timeoutMs
  for (;;) {
    const value = await get()
    if (fits(value)) return value
    if (performance.now() > end) throw new Error(`Timed out: ${goal}. Last: ${JSON.stringify(value)}`)
    await Bun.sleep(everyMs)
  }
}
