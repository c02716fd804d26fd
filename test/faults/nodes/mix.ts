import { logIn, type TestApp } from '../../helpers/webhook-client.ts'
import { pick } from '../../helpers/seeded-random.ts'
import { callApi, countStatuses, verify, violationUnless, type CallResult } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'
import { startMessageServer } from './message-server.ts'
import { isExpected } from './node-load.ts'

const callers = 9
/** Few, so that calls at all nodes meet on the same records. */
const phones = Array.from({ length: 60 }, (_, index) => `+1415555${String(1_000 + index)}`)
const eraseEveryMs = 2_000

/** A request that later calls verify, resend or cancel. */
type Sent = { app: TestApp; requestId: string; code: string | undefined }

export const mix = defineNodeFamily({
  name: 'nodes-mix',
  description:
    'every call on the same phones at three nodes, with webhooks, the guard, and people who are erased',
  counts: { 'node-mix-seconds': { full: 600, short: 0 } },
  async run(trial) {
    const seconds = trial.count('node-mix-seconds')
    if (seconds === 0) return
    const messages = startMessageServer()
    const receiver = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('ok') })
    const cluster = await startCluster(trial, {
      env: { OTPD_GUARD_MODE: 'enforce', ...messages.env },
      toml: messages.toml,
    })
    try {
      const client = await logIn(cluster.url)
      const apps: TestApp[] = []
      for (const environment of ['live', 'test', 'test', 'test'] as const) {
        const app = await client.createApplication(`Application ${apps.length}`, environment)
        await client.createEndpoint(app, receiver.url.href, ['otp.sent', 'otp.verified', 'otp.canceled'])
        apps.push(app)
      }
      const until = performance.now() + seconds * 1_000
      const isOver = () => performance.now() > until
      const [erased, ...results] = await Promise.all([
        erase(trial, cluster, isOver),
        ...Array.from({ length: callers }, () => call(trial, cluster, { apps, token: client.token, isOver })),
      ])
      await report(trial, cluster, { seconds, erased, results: results.flat() })
    } finally {
      await cluster.stop()
      await receiver.stop(true)
      messages.stop()
    }
  },
})

/** Makes random calls at random nodes, one after the other. */
async function call(
  trial: Trial,
  { nodes }: Cluster,
  { apps, token, isOver }: { apps: readonly TestApp[]; token: string; isOver(): boolean },
): Promise<CallResult[]> {
  const results: CallResult[] = []
  const sent: Sent[] = []
  while (!isOver()) {
    const { url } = pick(nodes, trial.random)
    const chance = trial.random()
    const target = sent[Math.floor(trial.random() * sent.length)]
    if (!target || chance < 0.4) {
      const app = pick(apps, trial.random)
      const clientIp = `198.51.100.${Math.floor(trial.random() * 40)}`
      const body = { phone: pick(phones, trial.random), clientIp }
      const { headers } = app
      const result = await callApi('POST', `${url}/v1/otp/send`, { headers, body })
      results.push(result)
      if (result.status !== 201) continue
      const { requestId, code } = result.data
      sent.unshift({ app, requestId: String(requestId), code: typeof code === 'string' ? code : undefined })
      sent.length = Math.min(sent.length, 10)
    } else if (chance < 0.7) {
      const code = trial.random() < 0.7 ? target.code : '000000'
      results.push(await verify(url, target.app, target.requestId, code ?? '000000'))
    } else if (chance < 0.9) {
      const { headers } = target.app
      const body = { requestId: target.requestId }
      results.push(
        await callApi('POST', `${url}/v1/otp/${chance < 0.8 ? 'resend' : 'cancel'}`, { headers, body }),
      )
    } else {
      const headers = { authorization: `Bearer ${token}` }
      const path = pick(
        ['otp?limit=20', 'logs?limit=20', 'users?limit=20', 'analytics/summary'],
        trial.random,
      )
      results.push(await callApi('GET', `${url}/v1/${path}`, { headers }))
    }
  }
  return results
}

/** Erases people while they are sent codes. @returns how many */
async function erase(trial: Trial, { nodes }: Cluster, isOver: () => boolean): Promise<number> {
  for (let erased = 0; ; erased++) {
    await Bun.sleep(eraseEveryMs)
    if (isOver()) return erased
    await pick(nodes, trial.random).runHostCommand(['admin', 'erase', pick(phones, trial.random), '--yes'])
  }
}

async function report(
  trial: Trial,
  { postgres }: Cluster,
  run: { seconds: number; erased: number; results: CallResult[] },
) {
  const { seconds, erased, results } = run
  // PostgreSQL's own count, of all but the last second.
  await Bun.sleep(1_500)
  const [row] = await postgres.query<{ count: number }>(
    'select sum(deadlocks)::int as count from pg_stat_database',
  )
  const [deliveries] = await postgres.query<{ count: number }>(
    "select count(*)::int as count from webhook_deliveries where status = 'delivered'",
    'otpd',
  )
  const unexpected = results.filter((result) => !isExpected(result))
  trial.report({
    scenario: `${callers} callers at three nodes, ${phones.length} phones, ${seconds} s`,
    guarantee: 'no transactions wait for each other in a ring, and every answer is 2xx, 4xx or 503',
    figures: {
      answers: countStatuses(results),
      'phones erased': erased,
      'webhooks delivered': deliveries?.count ?? 0,
      deadlocks: row?.count ?? -1,
    },
    violations: [
      ...violationUnless(row?.count === 0, `${row?.count} deadlocks`),
      ...violationUnless(unexpected.length === 0, `unexpected answers: ${countStatuses(unexpected)}`),
      ...violationUnless((deliveries?.count ?? 0) > 0, 'no webhook was delivered'),
      ...violationUnless(erased > 0, 'no phone was erased'),
    ],
  })
}
