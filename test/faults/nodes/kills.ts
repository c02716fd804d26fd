import { logIn, type TestApp } from '../../helpers/webhook-client.ts'
import { callApi, newPhone, violationUnless, waitUntil, type CallResult } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'

const applications = 4
const callers = 12
const webhooksMsMax = 120_000
const callTimeoutMs = 10_000

/** Request that a caller has heard of. */
type Tracked = { id: string; isVerified: boolean }

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
      const load = startRetryingLoad(cluster.url, apps)
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
      const stored = await readStored(cluster, [...tracked.keys()])
      const lost = [...tracked.values()].filter(({ id }) => !stored.has(id))
      const unverified = [...tracked.values()].filter(
        ({ id, isVerified }) => isVerified && stored.get(id) !== 'verified',
      )
      const [leases] = await cluster.postgres.query<{ count: number }>(
        "select count(*)::int as count from webhook_deliveries where status = 'pending'",
      )
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
          ...violationUnless(lost.length === 0, `${lost.length} acknowledged requests are lost`),
          ...violationUnless(unverified.length === 0, `${unverified.length} verifications are lost`),
          ...violationUnless(countMissing() === 0, `${countMissing()} webhooks never arrived`),
          ...violationUnless(leases?.count === 0, `${leases?.count} webhooks are still pending`),
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

async function readStored({ postgres }: Cluster, ids: string[]): Promise<Map<string, string>> {
  const rows = await postgres.query<{ id: string; status: string }>(
    'select id, status from otp_requests where id = any($1)',
    'otpd',
    [ids],
  )
  return new Map(rows.map(({ id, status }) => [id, status]))
}

/** Sends and verifies through the balancer. A call without an answer, or with 503, is repeated with the same key. */
function startRetryingLoad(url: string, apps: readonly TestApp[]) {
  const tracked = new Map<string, Tracked>()
  const violations: string[] = []
  const count = { retries: 0, done: 0 }
  const load = { isStopped: false }

  /** @returns the first answer that is neither 502, 503 nor 504, which the balancer or a node gave */
  async function repeat(call: () => Promise<CallResult>): Promise<{ answer: CallResult; tries: number }> {
    for (let tries = 1; ; tries++) {
      const answer = await call()
      if (![0, 502, 503, 504].includes(answer.status)) return { answer, tries }
      count.retries++
      await Bun.sleep(50)
    }
  }

  async function run(caller: number) {
    for (let i = caller; !load.isStopped; i++) {
      const app = apps[i % apps.length]
      if (!app) throw new Error('there is no application')
      const headers = { ...app.headers, 'idempotency-key': crypto.randomUUID() }
      const body = { phone: newPhone() }
      const post = (path: string, content: object, callHeaders: Record<string, string> = headers) =>
        repeat(() =>
          callApi('POST', `${url}/v1/otp/${path}`, {
            headers: callHeaders,
            body: content,
            timeoutMs: callTimeoutMs,
          }),
        )
      const { answer: sent } = await post('send', body)
      // A node that was killed between the request and its answer has left the key without one.
      if (sent.status === 409) continue
      if (sent.status !== 201) {
        violations.push(`a send was ${sent.status} ${String(sent.error['code'])}`)
        continue
      }
      const { requestId, code } = sent.data
      const request = { id: String(requestId), isVerified: false }
      if (tracked.has(request.id)) violations.push(`${request.id} was given to two callers`)
      tracked.set(request.id, request)
      count.done++
      await verifyTwice(request, app, code, post)
    }
  }

  /** Verifies a code, and then again: exactly one of the two may succeed. */
  async function verifyTwice(
    request: Tracked,
    app: TestApp,
    code: unknown,
    post: (path: string, content: object, headers: Record<string, string>) => ReturnType<typeof repeat>,
  ) {
    const body = { requestId: request.id, code }
    const { answer: first, tries } = await post('verify', body, app.headers)
    const { answer: second } = await post('verify', body, app.headers)
    // An earlier try may have verified it without an answer.
    const isFirstExpected = first.status === 200 || (first.status === 409 && tries > 1)
    if (!isFirstExpected) violations.push(`a verification was ${first.status} ${String(first.error['code'])}`)
    if (second.status !== 409) violations.push(`a second verification was ${second.status}`)
    request.isVerified = true
  }

  const ended = Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)))
  return {
    tracked,
    violations,
    count,
    /** Waits until so many more requests were sent, at most 20 s. */
    async waitFor(more: number) {
      const target = count.done + more
      await waitUntil(20_000, () => count.done >= target)
    },
    async stop() {
      load.isStopped = true
      await ended
    },
  }
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
