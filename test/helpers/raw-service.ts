import { expect } from 'bun:test'
import { securityHeaders } from '../../src/http/app.ts'
import { listen } from '../../src/http/listener.ts'
import type { AnsweredCall } from '../../src/http/request-log.ts'
import { createEdge } from './edge.ts'
import { exchangeRaw, type RawAnswer } from './raw-http.ts'

export type RawService = Awaited<ReturnType<typeof startRawService>>

/** The real application behind the real listener, for requests that no HTTP client would send. */
export async function startRawService() {
  const edge = await createEdge()
  const calls: AnsweredCall[] = []
  const bugs: unknown[] = []
  let waiting: Array<() => void> = []
  const listener = listen({ host: '127.0.0.1', port: 0 }, edge.service.app, {
    newId: edge.service.services.newId,
    onBug: (error) => void bugs.push(error),
    onAnswer(call) {
      calls.push(call)
      for (const resolve of waiting.splice(0)) resolve()
    },
  })
  const port = Number(new URL(listener.url).port)

  return {
    port,
    /** What was answered and what went wrong, since the last `forget`. */
    calls,
    bugs,
    forget() {
      calls.length = 0
      bugs.length = 0
      waiting = []
    },
    /** Resolves when the next call has been answered, whether or not anybody is there to hear it. */
    nextAnswer: () => new Promise<void>((resolve) => waiting.push(resolve)),

    /** The one answer to a request. */
    async ask(...parts: string[]): Promise<RawAnswer> {
      const { answers } = await exchangeRaw(port, parts)
      const [answer, ...more] = answers
      if (!answer || more.length > 0) throw new Error(`${answers.length} answers`)
      return answer
    },

    /** Fails unless the answer is an error as the OpenAPI document has it, as safe as every other answer. */
    expectError(answer: RawAnswer, status: number, error: Record<string, unknown>) {
      const body: unknown = JSON.parse(answer.body)
      expect([answer.status, body]).toMatchObject([status, { error }])
      expect(edge.faultsOfError(body)).toEqual([])
      expect(body).toMatchObject({ error: { traceId: answer.headers.get('x-request-id') } })
      for (const [name, value] of Object.entries(securityHeaders))
        expect(answer.headers.get(name)).toBe(value)
    },

    async dispose() {
      await listener.stop(0)
      await edge.service.dispose()
    },
  }
}

export const getRequest = (target: string, ...headers: string[]) =>
  [`GET ${target} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n')
