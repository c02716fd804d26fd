import type { TestApp } from '../../helpers/webhook-client.ts'
import { callApi, newPhone, type CallResult } from '../calls.ts'
import type { ClusterNode } from './cluster.ts'

/** Answer of a node. `startedAt` is on the clock of `performance.now`. */
export type NodeCall = CallResult & { node: number; startedAt: number; kind: 'send' | 'verify' | 'list' }

export type NodeLoad = ReturnType<typeof startNodeLoad>

const timeoutMs = 60_000

/**
 * Calls each node directly, with several callers at once, which send codes and verify most of those of test applications;
 * with a token, another one reads lists.
 */
export function startNodeLoad(
  nodes: readonly ClusterNode[],
  { apps, callers, token }: { apps: readonly TestApp[]; callers: number; token?: string },
) {
  const calls: NodeCall[] = []
  const sent: Array<{ requestId: string; app: TestApp }> = []
  const controller = new AbortController()

  async function run(node: number, url: string, caller: number) {
    async function record(kind: NodeCall['kind'], call: () => Promise<CallResult>) {
      const startedAt = performance.now()
      const result = await call()
      calls.push({ ...result, kind, node, startedAt })
      return result
    }
    for (let i = caller; !controller.signal.aborted; i++) {
      const app = apps[i % apps.length]
      if (!app) throw new Error('there is no application')
      const body = { phone: newPhone() }
      const { headers } = app
      const { status, data } = await record('send', () =>
        callApi('POST', `${url}/v1/otp/send`, { headers, body, timeoutMs }),
      )
      if (status === 201) sent.push({ requestId: String(data['requestId']), app })
      if (typeof data['code'] === 'string' && i % 4 > 0)
        await record('verify', () =>
          callApi('POST', `${url}/v1/otp/verify`, {
            headers,
            body: { requestId: data['requestId'], code: data['code'] },
            timeoutMs,
          }),
        )
      // Nothing listens, or it refuses: the machine is needed for the others.
      if (status === 0 || status === 503) await Bun.sleep(20)
    }
  }

  async function readLists(node: number, url: string) {
    const headers = { authorization: `Bearer ${token}` }
    while (!controller.signal.aborted) {
      const startedAt = performance.now()
      const result = await callApi('GET', `${url}/v1/otp?limit=5`, { headers, timeoutMs })
      calls.push({ ...result, kind: 'list', node, startedAt })
      await Bun.sleep(50)
    }
  }

  const ended = Promise.all(
    nodes.flatMap(({ url }, node) => [
      ...Array.from({ length: callers }, (_, caller) => run(node, url, caller)),
      ...(token === undefined ? [] : [readLists(node, url)]),
    ]),
  )
  return {
    calls,
    /** Acknowledged sends. */
    sent,
    async stop() {
      controller.abort()
      await ended
    },
  }
}

/** Whether an answer is one that callers must expect: success, refusal, or the request to retry. */
export const isExpected = ({ status }: CallResult) => (status >= 200 && status < 500) || status === 503

/** Selects the calls that were under way at some time in between. */
export const duringOf = (calls: readonly NodeCall[], from: number, until: number) =>
  calls.filter(({ startedAt, ms }) => startedAt < until && startedAt + ms > from)

/** Duration of the slowest call in milliseconds. */
export const slowestMs = (calls: readonly CallResult[]) =>
  Math.round(Math.max(0, ...calls.map(({ ms }) => ms)))
