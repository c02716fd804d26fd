import { guideDrain } from '../../helpers/haproxy.ts'
import { logIn } from '../../helpers/webhook-client.ts'
import { countStatuses, send, violationUnless, type CallResult } from '../calls.ts'
import { defineNodeFamily, startCluster } from './cluster.ts'

const callsPerSecond = 150

export const restarts = defineNodeFamily({
  name: 'nodes-restarts',
  description: 'SIGTERM of one node after the other behind the HAProxy of the guide, under load',
  counts: { 'node-restarts': { full: 50, short: 0 } },
  async run(trial) {
    const count = trial.count('node-restarts')
    if (count === 0) return
    const cluster = await startCluster(trial, { env: guideDrain, isGuideBalancer: true })
    try {
      const app = await (await logIn(cluster.url)).createApplication()
      const load = startOpenLoad(() => send(cluster.url, app))
      const exitCodes: number[] = []
      for (let i = 0; i < count; i++) {
        const node = cluster.nodes[i % cluster.nodes.length]
        exitCodes.push((await node?.stop()) ?? -1)
        // Ready, as the guide waits for it; the balancer notices later.
        await node?.start()
      }
      const calls = await load.stop()
      const failed = calls.filter(({ status }) => status !== 201)
      trial.report({
        scenario: `${count} restarts one after the other, ${callsPerSecond} sends a second`,
        guarantee: 'every call succeeds',
        figures: { calls: countStatuses(calls) },
        violations: [
          ...violationUnless(failed.length === 0, `failed: ${countStatuses(failed)}`),
          ...violationUnless(
            exitCodes.every((code) => code === 0),
            `exit codes ${exitCodes.join(', ')}`,
          ),
        ],
      })
    } finally {
      await cluster.stop()
    }
  },
})

/** Starts calls at a constant rate, whether or not the earlier ones have ended. */
function startOpenLoad(call: () => Promise<CallResult>) {
  const calls: Array<Promise<CallResult>> = []
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1_000) * callsPerSecond
    while (calls.length < due) calls.push(call())
  }, 5)
  return {
    async stop() {
      clearInterval(timer)
      return Promise.all(calls)
    },
  }
}
