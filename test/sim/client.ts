import type { Chance } from './chance.ts'
import type { Node } from './node.ts'
import type { Scheduler } from './scheduler.ts'

export type Answer = {
  status: number
  text: string
  data: Record<string, never> & { [name: string]: unknown }
}

export type CallOptions = { headers?: Record<string, string>; body?: unknown }

/** A call that the caller got an answer to, or not. */
export type Outcome = { startedAt: number; endedAt: number; answer: Answer | undefined }

export type Client = ReturnType<typeof createClient>

/** Creates the callers of the API, across a network that can lose answers. */
export function createClient(needs: {
  scheduler: Scheduler
  chance: Chance
  node: () => Node | undefined
  /** Share of answers that do not arrive. */
  lost: () => number
  trace(line: string): void
}) {
  const { scheduler, chance, trace } = needs
  let count = 0
  const open = new Set<Promise<Outcome>>()

  return {
    /** Calls the API. Never rejects: without a server, or if it ends, there is no answer. */
    call(method: string, path: string, { headers = {}, body }: CallOptions = {}): Promise<Outcome> {
      const number = ++count
      const startedAt = scheduler.now()
      const outcome = new Promise<Outcome>((resolve) => {
        const finish = (answer: Answer | undefined) => {
          trace(`call ${number} ${method} ${path} ${answer?.status ?? 'no answer'}`)
          resolve({ startedAt, endedAt: scheduler.now(), answer })
        }
        scheduler.after(chance.around(5), () => {
          const node = needs.node()
          if (!node) return finish(undefined)
          const request = new Request(`http://otpd.sim${path}`, {
            method,
            headers: {
              host: 'otpd.sim',
              ...(body !== undefined && { 'content-type': 'application/json' }),
              ...headers,
            },
            ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
          })
          const isLost = chance.happens(needs.lost())
          const backMs = chance.around(5)
          node
            .call(request)
            .then(readAnswer)
            .catch(() => undefined)
            .then((answer) => scheduler.after(backMs, () => finish(isLost ? undefined : answer)))
            .catch(() => {})
        })
      })
      open.add(outcome)
      void outcome.then(() => open.delete(outcome))
      return outcome
    },

    /** Resolves when the calls that are under way have ended. */
    whenAnswered: () => Promise.all(open),
  }
}

async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text()
  const { data = {} } = (text === '' ? {} : JSON.parse(text)) as { data?: Answer['data'] }
  return { status: response.status, text, data }
}
