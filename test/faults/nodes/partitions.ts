import { startTcpProxy } from '../../helpers/tcp-proxy.ts'
import { startPostgresServer } from '../../helpers/postgres-server.ts'
import { logIn } from '../../helpers/webhook-client.ts'
import { callApi, countStatuses, violationUnless, waitUntil } from '../calls.ts'
import { defineNodeFamily, startCluster } from './cluster.ts'
import { duringOf, isExpected, slowestMs, startNodeLoad } from './node-load.ts'

const callers = 4
const cutMs = 30_000
const answerMsMax = 5_000
const othersMsMax = 2_500
const backMsMax = 5_000

export const partitions = defineNodeFamily({
  name: 'nodes-partitions',
  description: 'a network that swallows the bytes between one node and the database, both ways, for 30 s',
  counts: { 'node-partitions': { full: 3, short: 0 } },
  async run(trial) {
    const cuts = trial.count('node-partitions')
    if (cuts === 0) return
    const postgres = await startPostgresServer()
    const proxy = await startTcpProxy(postgres.port)
    const throughProxy = new URL(postgres.url)
    throughProxy.port = String(proxy.port)
    const cluster = await startCluster(trial, {
      postgres,
      databaseUrl: (i) => (i === 0 ? throughProxy.href : postgres.url),
    })
    try {
      const client = await logIn(cluster.nodes[1]?.url ?? '')
      const app = await client.createApplication()
      const cutOff = cluster.nodes[0]
      for (let i = 0; i < cuts; i++) {
        const load = startNodeLoad(cluster.nodes, { apps: [app], callers, token: client.token })
        await Bun.sleep(3_000)
        proxy.swallow(true)
        const from = performance.now()
        await Bun.sleep(answerMsMax)
        const ready = await callApi('GET', `${cutOff?.url}/v1/health/ready`)
        await Bun.sleep(cutMs / 2)
        const [left] = await postgres.query<{ count: number }>(
          `select count(*)::int as count from pg_stat_activity
            where application_name = 'otpd/node-0' and xact_start < now() - interval '3 s'`,
        )
        await Bun.sleep(cutMs / 2 - answerMsMax)
        proxy.swallow(false)
        const until = performance.now()
        await waitUntil(trial.allowMs(backMsMax), () =>
          load.calls.some(({ node, status, startedAt }) => node === 0 && status === 201 && startedAt > until),
        )
        const backMs = Math.round(performance.now() - until)
        await Bun.sleep(1_000)
        await load.stop()
        const during = duringOf(load.calls, from, until)
        const atNode = during.filter(({ node, startedAt }) => node === 0 && startedAt > from)
        const atOthers = during.filter(({ node }) => node !== 0)
        const unexpected = load.calls.filter((call) => !isExpected(call))
        // A call that outlasts the cut may succeed.
        const notRefused = atNode.filter(
          ({ status, startedAt, ms }) => status !== 503 && startedAt + ms < until,
        )
        trial.report({
          scenario: `cut of ${cutMs / 1_000} s`,
          guarantee: `the node answers 503 within ${answerMsMax} ms, the others within ${othersMsMax} ms; no lock is left`,
          figures: {
            'answers of the node': countStatuses(atNode),
            'its slowest ms': slowestMs(atNode),
            'answers of the others': countStatuses(atOthers),
            'their slowest ms': slowestMs(atOthers),
            'its readiness': ready.status,
            'back after ms': backMs,
          },
          violations: [
            ...violationUnless(atNode.length > 0 && atOthers.length > 0, 'there were no calls'),
            ...violationUnless(notRefused.length === 0, `it answered ${countStatuses(notRefused)}`),
            ...violationUnless(
              slowestMs(atNode) <= answerMsMax + 500,
              `it took ${slowestMs(atNode)} ms to answer`,
            ),
            ...violationUnless(
              slowestMs(atOthers) <= othersMsMax,
              `another node took ${slowestMs(atOthers)} ms`,
            ),
            ...violationUnless(ready.status === 503, `its readiness was ${ready.status}`),
            ...violationUnless(unexpected.length === 0, `unexpected answers: ${countStatuses(unexpected)}`),
            ...violationUnless(left?.count === 0, `${left?.count} of its transactions are still open`),
            ...violationUnless(backMs <= trial.allowMs(backMsMax), `it was back after ${backMs} ms`),
          ],
        })
      }
    } finally {
      proxy.stop()
      await cluster.stop()
    }
  },
})
