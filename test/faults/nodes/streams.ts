import { readEventStream } from '../../helpers/event-stream.ts'
import { logIn, type TestApp, type WebhookClient } from '../../helpers/webhook-client.ts'
import { newPhone, send, violationUnless, waitUntil } from '../calls.ts'
import type { Trial } from '../family.ts'
import { encodeRequest, openConnection } from '../connection.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'

const writers = 9
const readers = 3
const changeEveryMs = 1_000
const lagMsMax = 300
/** The short form shares the machine with other checks. */
const lagShortMsMax = 1_000
const logStart = `evt_${'0'.repeat(26)}`

export const nodeStreams = defineNodeFamily({
  name: 'nodes-streams',
  description: 'live logs that go on at another node every second, while nine callers write',
  counts: { 'node-stream-seconds': { full: 120, short: 8 }, 'node-lags': { full: 300, short: 60 } },
  async run(trial) {
    const cluster = await startCluster(trial)
    try {
      const client = await logIn(cluster.url)
      const apps = await Promise.all([1, 2, 3].map(() => client.createApplication()))
      await checkOrder(trial, cluster, client, apps)
      await measureLag(trial, cluster, client, apps[0])
    } finally {
      await cluster.stop()
    }
  },
})

async function checkOrder(trial: Trial, cluster: Cluster, client: WebhookClient, apps: TestApp[]) {
  const streams = Array.from({ length: readers }, (_, i) => startReader(cluster, client.token, i))
  const endsAt = performance.now() + trial.count('node-stream-seconds') * 1_000
  const write = async (writer: number) => {
    const connection = await openConnection(cluster.url)
    const headers = apps[writer % apps.length]?.headers ?? {}
    let refused = 0
    while (performance.now() < endsAt && !connection.isClosed()) {
      const request = encodeRequest('POST', '/v1/otp/send', headers, { phone: newPhone() })
      if ((await connection.send(request))?.status !== 201) refused++
    }
    connection.close()
    return refused
  }
  const refused = await Promise.all(Array.from({ length: writers }, (_, i) => write(i)))
  // Entries have no id of their own in the database: it is made of `seq`.
  const rows = await cluster.postgres.query<{ entry: string }>(
    "select type || ' ' || request_id as entry from events order by seq",
  )
  const written = rows.map(({ entry }) => entry)
  await waitUntil(trial.allowMs(5_000), () =>
    streams.every(({ entries }) => entries.at(-1) === written.at(-1)),
  )
  await Promise.all(streams.map(({ stop }) => stop()))
  const violations = streams.flatMap(({ entries }, i) => {
    const skipped = new Set(written).difference(new Set(entries)).size
    const twice = entries.length - new Set(entries).size
    const isInOrder = entries.every((entry, at) => entry === written[at])
    return [
      ...violationUnless(skipped === 0, `reader ${i}: ${skipped} entries are missing`),
      ...violationUnless(twice === 0, `reader ${i}: ${twice} entries came twice`),
      ...violationUnless(isInOrder || skipped + twice > 0, `reader ${i}: the order is another one`),
    ]
  })
  trial.report({
    scenario: `${writers} writers and ${readers} readers, ${trial.count('node-stream-seconds')} s`,
    guarantee: 'a stream that goes on at another node skips nothing, repeats nothing, and keeps the order',
    figures: {
      entries: written.length,
      'changes of node': streams.reduce((sum, { count }) => sum + count.changes, 0),
      'calls without success': refused.reduce((sum, one) => sum + one, 0),
    },
    violations: [
      ...violations,
      ...violationUnless(written.length >= writers, `only ${written.length} entries were written`),
    ],
  })
}

/** Reads the whole log, and changes to the next node every second. */
function startReader({ nodes }: Cluster, token: string, first: number, changesNode = true) {
  const entries: string[] = []
  let position = logStart
  const arrivedAt = new Map<string, number>()
  const count = { changes: 0 }
  const stopping = new AbortController()
  let cancel = () => {}

  async function readFrom(node: number) {
    const url = `${nodes[node % nodes.length]?.url}/v1/logs/stream?after=${position}`
    const controller = new AbortController()
    cancel = () => controller.abort()
    const timer = changesNode ? setTimeout(cancel, changeEveryMs) : undefined
    try {
      const response = await fetch(url, {
        headers: { authorization: `Bearer ${token}` },
        signal: controller.signal,
      })
      const stream = readEventStream(response.body)
      for (;;) {
        const message = await stream.next()
        if (!message) return
        if (message.data === undefined || message.event !== undefined || message.id === undefined) continue
        position = message.id
        const { type, requestId }: { type: string; requestId: string } = JSON.parse(message.data)
        entries.push(`${type} ${requestId}`)
        arrivedAt.set(requestId, performance.now())
      }
    } catch {
      // Aborted, or the connection ended: goes on at the next node.
    } finally {
      clearTimeout(timer)
    }
  }

  const ended = (async () => {
    for (let node = first; !stopping.signal.aborted; node++) {
      await readFrom(node)
      count.changes++
    }
  })()
  return {
    entries,
    arrivedAt,
    count,
    async stop() {
      stopping.abort()
      cancel()
      await ended
    },
  }
}

async function measureLag(trial: Trial, cluster: Cluster, client: WebhookClient, app: TestApp | undefined) {
  if (!app) throw new Error('there is no application')
  const streams = cluster.nodes.map((_, i) => startReader(cluster, client.token, i, false))
  await Bun.sleep(1_000)
  const lagsMs: number[] = []
  const missing: string[] = []
  for (let i = 0; i < trial.count('node-lags'); i++) {
    const writer = i % cluster.nodes.length
    const { data } = await send(cluster.nodes[writer]?.url ?? '', app)
    const requestId = String(data['requestId'])
    const answeredAt = performance.now()
    const others = streams.filter((_, reader) => reader !== writer)
    if (!(await waitUntil(5_000, () => others.every(({ arrivedAt }) => arrivedAt.has(requestId)))))
      missing.push(requestId)
    for (const { arrivedAt } of others) {
      const at = arrivedAt.get(requestId)
      if (at !== undefined) lagsMs.push(Math.max(0, at - answeredAt))
    }
    // Not in step with the nodes, which look every 200 ms.
    await Bun.sleep(trial.random() * 50)
  }
  await Promise.all(streams.map(({ stop }) => stop()))
  const sorted = lagsMs.toSorted((a, b) => a - b)
  const p99Ms = Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0)
  const maxMs = trial.short ? lagShortMsMax : lagMsMax
  trial.report({
    scenario: `${trial.count('node-lags')} sends at rest, streams at the two other nodes`,
    guarantee: `an entry arrives within ${maxMs} ms (p99)`,
    figures: {
      'p50 ms': Math.round(sorted[sorted.length >> 1] ?? 0),
      'p99 ms': p99Ms,
      'longest ms': Math.round(sorted.at(-1) ?? 0),
    },
    violations: [
      ...violationUnless(missing.length === 0, `${missing.length} entries did not arrive within 5 s`),
      ...violationUnless(p99Ms <= maxMs, `p99 is ${p99Ms} ms`),
    ],
  })
}
