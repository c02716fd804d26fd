import { logIn, type TestApp } from '../../helpers/webhook-client.ts'
import { callApi, violationUnless, waitUntil } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'
import { countLost, startRetryingLoad } from './retrying-load.ts'

const applications = 4
const callers = 12
const webhooksMsMax = 120_000

export const nodeKills = defineNodeFamily({
  name: 'nodes-kills',
  description: 'kill -9 of nodes and immediate stops of the database, while callers retry by idempotency key',
  counts: { 'node-kills': { full: 60, short: 4 }, 'database-kills': { full: 8, short: 1 } },
  async run(trial) {
    const cluster = await startCluster(trial)
    const receiver = startReceiver()
    try {
      const client = await logIn(cluster.url)
      const apps: TestApp[] = []
      for (let i = 0; i < applications; i++) {
        const app = await client.createApplication()
        await client.createEndpoint(app, receiver.url, ['otp.sent', 'otp.verified'])
        apps.push(app)
      }
      const load = startRetryingLoad(cluster.url, apps, callers)
      const startsMs: number[] = []
      const steps = shuffle(trial, [
        ...Array<'node'>(trial.count('node-kills')).fill('node'),
        ...Array<'database'>(trial.count('database-kills')).fill('database'),
      ])
      for (const step of steps) {
        await load.waitFor(20)
        await Bun.sleep(trial.random() * 300)
        startsMs.push(step === 'node' ? await killNode(trial, cluster) : await killDatabase(cluster))
      }
      await load.waitFor(20)
      await load.stop()
      const { tracked } = load
      const expected = [
        ...[...tracked.keys()].map((id) => `otp.sent ${id}`),
        ...[...tracked.values()].filter(({ isVerified }) => isVerified).map(({ id }) => `otp.verified ${id}`),
      ]
      const countMissing = () => expected.filter((event) => !receiver.seen.has(event)).length
      await waitUntil(webhooksMsMax, () => countMissing() === 0)
      // A node records that a webhook has arrived after it has; that of a killed node is sent again after its lease.
      await waitUntil(webhooksMsMax, async () => (await countPending(cluster)) === 0)
      const pending = await countPending(cluster)
      const { lost, unverified } = await countLost(cluster.postgres, tracked)
      trial.report({
        scenario: `${trial.count('node-kills')} kills of nodes, ${trial.count('database-kills')} of the database, ${callers} callers`,
        guarantee: 'nothing acknowledged is lost, no code is verified twice, every webhook arrives, no 500',
        figures: {
          'acknowledged sends': tracked.size,
          'acknowledged verifications': [...tracked.values()].filter(({ isVerified }) => isVerified).length,
          'calls repeated': load.count.retries,
          webhooks: receiver.seen.size,
          'webhooks repeated': receiver.count.repeated,
          'back after ms, longest': Math.round(Math.max(...startsMs)),
        },
        violations: [
          ...load.violations,
          ...violationUnless(lost === 0, `${lost} acknowledged requests are lost`),
          ...violationUnless(unverified === 0, `${unverified} verifications are lost`),
          ...violationUnless(countMissing() === 0, `${countMissing()} webhooks never arrived`),
          ...violationUnless(pending === 0, `${pending} webhooks are still pending`),
        ],
      })
    } finally {
      await cluster.stop()
      receiver.stop()
    }
  },
})

function shuffle<T>({ random }: Trial, list: T[]): T[] {
  return list
    .map((item) => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** @returns how long the node took to serve again */
async function killNode({ random }: Trial, { nodes }: Cluster): Promise<number> {
  const node = nodes[Math.floor(random() * nodes.length)]
  await node?.kill()
  const startedAt = performance.now()
  await node?.start()
  return performance.now() - startedAt
}

/** @returns how long the database and a node took to answer again */
async function killDatabase({ postgres, url }: Cluster): Promise<number> {
  await postgres.stop('immediate')
  await Bun.sleep(300)
  const startedAt = performance.now()
  await postgres.start()
  await waitUntil(30_000, async () => (await callApi('GET', `${url}/v1/health/ready`)).status === 200)
  return performance.now() - startedAt
}

async function countPending({ postgres }: Cluster): Promise<number> {
  const [row] = await postgres.query<{ count: number }>(
    "select count(*)::int as count from webhook_deliveries where status = 'pending'",
  )
  return row?.count ?? 0
}

/** Starts the receiver of the webhooks. It takes each of them. */
function startReceiver() {
  const seen = new Set<string>()
  const count = { repeated: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { type, data }: { type: string; data: { requestId: string } } = JSON.parse(await request.text())
      const event = `${type} ${data.requestId}`
      if (seen.has(event)) count.repeated++
      seen.add(event)
      return new Response('ok')
    },
  })
  return { url: server.url.href, seen, count, stop: () => void server.stop(true) }
}
