import { expect } from 'bun:test'
import { securityHeaders } from '../../src/http/app.ts'
import { listen } from '../../src/http/listener.ts'
import type { CompletedRequest } from '../../src/http/request-log.ts'
import { createApiTester } from './api-tester.ts'
import { exchangeRaw, type RawResponse } from './raw-http.ts'

export type RawService = Awaited<ReturnType<typeof startRawService>>

/** Starts the real application behind the real listener, for requests that an HTTP client would not send. */
export async function startRawService() {
  const apiTester = await createApiTester()
  const calls: CompletedRequest[] = []
  const bugs: unknown[] = []
  let waiters: Array<() => void> = []
  const listener = listen({ host: '127.0.0.1', port: 0 }, apiTester.service.app, {
    newId: apiTester.service.services.newId,
    onBug: (error) => void bugs.push(error),
    onResponse(call) {
      calls.push(call)
      for (const resolve of waiters.splice(0)) resolve()
    },
  })
  const port = Number(new URL(listener.url).port)

  return {
    port,
    /** Responses and errors since the last `forget`. */
    calls,
    bugs,
    reset() {
      calls.length = 0
      bugs.length = 0
      waiters = []
    },
    /** Resolves when the next call has been answered, even if its client is gone. */
    nextResponse: () => new Promise<void>((resolve) => waiters.push(resolve)),

    /** Sends a request and returns its only response. */
    async request(...parts: string[]): Promise<RawResponse> {
      const { responses } = await exchangeRaw(port, parts)
      const [response, ...others] = responses
      if (!response || others.length > 0) throw new Error(`${responses.length} answers`)
      return response
    },

    /** Fails unless the response is an error that matches the OpenAPI document and has the security headers. */
    expectError(response: RawResponse, status: number, error: Record<string, unknown>) {
      const body: unknown = JSON.parse(response.body)
      expect([response.status, body]).toMatchObject([status, { error }])
      expect(apiTester.findErrorBodyFaults(body)).toEqual([])
      expect(body).toMatchObject({ error: { traceId: response.headers.get('x-request-id') } })
      for (const [name, value] of Object.entries(securityHeaders))
        expect(response.headers.get(name)).toBe(value)
    },

    async dispose() {
      await listener.stop(0)
      await apiTester.service.dispose()
    },
  }
}

export const getRequest = (target: string, ...headers: string[]) =>
  [`GET ${target} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n')
