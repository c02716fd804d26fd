import { startPostgresServer, startStandby, type PostgresServer } from '../../helpers/postgres-server.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'
import { logIn } from '../../helpers/webhook-client.ts'
import { send, violationUnless, waitUntil } from '../calls.ts'
import { defineNodeFamily, startCluster } from './cluster.ts'
import { countLost, startRetryingLoad } from './retrying-load.ts'

const callers = 8
const backMsMax = 2_000

export const failovers = defineNodeFamily({
  name: 'nodes-failovers',
  description: 'immediate stop of the primary and promotion of its synchronous standby, under load',
  counts: { 'node-failovers': { full: 5, short: 0 } },
  async run(trial) {
    const failoverCount = trial.count('node-failovers')
    if (failoverCount === 0) return
    let primary = await startPostgresServer()
    let standby = await startSynchronousStandby(primary, await findUnusedPort())
    const url = new URL(primary.url)
    const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join(',')
    const databaseUrl = `postgres://otpd@${hosts}${url.pathname}?target_session_attrs=read-write`
    const cluster = await startCluster(trial, { postgres: primary, databaseUrl: () => databaseUrl })
    try {
      const app = await (await logIn(cluster.url)).createApplication()
      const load = startRetryingLoad(cluster.url, [app], callers)
      const backMs: number[] = []
      for (let i = 0; i < failoverCount; i++) {
        await load.waitFor(30)
        await primary.stop('immediate')
        await standby.query('select pg_promote()', 'postgres')
        const promotedAt = performance.now()
        await Promise.all(
          cluster.nodes.map((node) =>
            waitUntil(20_000, async () => (await send(node.url, app)).status === 201),
          ),
        )
        backMs.push(Math.round(performance.now() - promotedAt))
        await primary.dispose()
        // The lost server comes back, as the standby of the new one.
        const port = primary.port
        primary = standby
        standby = await startSynchronousStandby(primary, port)
      }
      await load.waitFor(30)
      await load.stop()
      const { lost, unverified } = await countLost(primary, load.tracked)
      trial.report({
        scenario: `${failoverCount} failovers to a synchronous standby, ${callers} callers`,
        guarantee: `nothing acknowledged is lost, no code is verified twice, each node is back within ${trial.allowMs(backMsMax)} ms after the promotion, without a restart`,
        figures: {
          acknowledged: load.tracked.size,
          'calls repeated': load.count.retries,
          'back after ms': backMs.join(', '),
        },
        violations: [
          ...load.violations,
          ...violationUnless(lost === 0, `${lost} acknowledged requests are lost`),
          ...violationUnless(unverified === 0, `${unverified} verifications are lost`),
          ...violationUnless(
            Math.max(...backMs) <= trial.allowMs(backMsMax),
            `back after ${Math.max(...backMs)} ms`,
          ),
        ],
      })
    } finally {
      await cluster.stop()
      await primary.dispose()
      await standby.dispose()
    }
  },
})

async function startSynchronousStandby(primary: PostgresServer, port: number): Promise<PostgresServer> {
  const standby = await startStandby(primary, 'standby', port)
  await primary.query("alter system set synchronous_standby_names = 'standby'", 'postgres')
  await primary.query('select pg_reload_conf()', 'postgres')
  const isSynchronous = async () =>
    (await primary.query("select 1 from pg_stat_replication where sync_state = 'sync'", 'postgres')).length >
    0
  if (!(await waitUntil(30_000, isSynchronous))) throw new Error('the standby does not replicate')
  return standby
}
