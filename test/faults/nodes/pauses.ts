import { logIn } from '../../helpers/webhook-client.ts'
import { countStatuses, violationUnless, waitUntil } from '../calls.ts'
import type { Trial } from '../family.ts'
import { defineNodeFamily, startCluster, type Cluster, type ClusterNode } from './cluster.ts'
import { startMessageServer, type MessageServer } from './message-server.ts'
import { duringOf, isExpected, slowestMs, startNodeLoad, type NodeCall, type NodeLoad } from './node-load.ts'

const callers = 5
const pauseMs = 10_000
/** Longer than the lease of a message: others send what the node had leased. */
const longPauseMs = 23_000
const leaseMs = 20_000
const othersMsMax = 2_500
/** The short form shares the machine with other checks. */
const othersShortMsMax = 6_000

type Pause = { node: number; from: number; until: number; isInTransaction: boolean; tooLate: number }

export const pauses = defineNodeFamily({
  name: 'nodes-pauses',
  description: 'SIGSTOP of a node in a transaction, under load',
  counts: { 'node-pauses': { full: 15, short: 0 }, 'node-long-pauses': { full: 4, short: 1 } },
  async run(trial) {
    const messages = startMessageServer()
    const cluster = await startCluster(trial, { env: messages.env, toml: messages.toml })
    try {
      const client = await logIn(cluster.url)
      const apps = [
        await client.createApplication('One', 'live'),
        await client.createApplication('Two', 'test'),
        await client.createApplication('Three', 'live'),
      ]
      const load = startNodeLoad(cluster.nodes, { apps, callers })
      const done: Pause[] = []
      for (const ms of [
        ...Array<number>(trial.count('node-pauses')).fill(pauseMs),
        ...Array<number>(trial.count('node-long-pauses')).fill(longPauseMs),
      ]) {
        await Bun.sleep(1_500)
        done.push(await pause(cluster, messages, done.length % cluster.nodes.length, ms))
      }
      await Bun.sleep(1_500)
      await load.stop()
      const live = load.sent.filter(({ app }) => app !== apps[1]).map(({ requestId }) => requestId)
      await report(trial, { load, pauses: done, messages, live, cluster })
    } finally {
      await cluster.stop()
      messages.stop()
    }
  },
})

/** Pauses a node, if possible while it has a transaction open, and resumes it. */
async function pause(cluster: Cluster, messages: MessageServer, index: number, ms: number): Promise<Pause> {
  const node = cluster.nodes[index]
  if (!node) throw new Error(`there is no node ${index}`)
  const isInTransaction = await pauseInTransaction(cluster, node)
  const from = performance.now()
  const pausedAt = Date.now()
  await Bun.sleep(ms)
  const resumedAt = Date.now()
  node.resume()
  const until = performance.now()
  if (ms < leaseMs) return { node: index, from, until, isInTransaction, tooLate: 0 }
  await Bun.sleep(2_000)
  const late = messages.handed.filter((message) => message.node === index && message.at >= resumedAt)
  // Others have sent them, or will: the node's lease is over.
  const [row] = await cluster.postgres.query<{ count: number }>(
    'select count(*)::int as count from otp_requests where id = any($1) and created_at < $2',
    'otpd',
    [late.map(({ requestId }) => requestId), pausedAt],
  )
  return { node: index, from, until, isInTransaction, tooLate: row?.count ?? 0 }
}

const triesMax = 40

async function pauseInTransaction({ postgres }: Cluster, node: ClusterNode): Promise<boolean> {
  for (let tries = 0; ; tries++) {
    node.pause()
    // The statement that was running has come to its end.
    await Bun.sleep(30)
    const [row] = await postgres.query<{ open: boolean }>(
      "select count(*) > 0 as open from pg_stat_activity where application_name = $1 and state = 'idle in transaction'",
      'otpd',
      [`otpd/${node.name}`],
    )
    if (row?.open || tries === triesMax) return row?.open ?? false
    node.resume()
    await Bun.sleep(20 + Math.random() * 50)
  }
}

async function report(
  trial: Trial,
  run: { load: NodeLoad; pauses: Pause[]; messages: MessageServer; live: string[]; cluster: Cluster },
) {
  const { load, pauses: done, messages, live, cluster } = run
  // A node that was paused before may still be answering the calls of that time.
  const wasPaused = (call: NodeCall) =>
    done.some(({ node, from, until }) => call.node === node && duringOf([call], from, until).length > 0)
  const ofOthers = done.flatMap(({ from, until }) =>
    duringOf(load.calls, from, until).filter((call) => !wasPaused(call)),
  )
  const worstMs = slowestMs(ofOthers)
  const worstMsMax = trial.short ? othersShortMsMax : othersMsMax
  const refused = ofOthers.filter(({ status }) => status === 503)
  const unexpected = load.calls.filter((call) => !isExpected(call))
  const handedCount = new Map<string, number>()
  const isHanded = () => {
    for (const { requestId } of messages.handed)
      handedCount.set(requestId, (handedCount.get(requestId) ?? 0) + 1)
    return live.every((id) => handedCount.has(id))
  }
  // A lease has to run out before another node sends the message.
  await waitUntil(leaseMs + trial.allowMs(10_000), () => {
    handedCount.clear()
    return isHanded()
  })
  const notHanded = live.filter((id) => !handedCount.has(id))
  // The pause outlasted the time-out of an attempt that had begun: it may have arrived, so it is not made again.
  const uncertain = await cluster.postgres.query<{ id: string }>(
    "select request_id as id from otp_deliveries where request_id = any($1) and status = 'unknown'",
    'otpd',
    [notHanded],
  )
  const missing = notHanded.filter((id) => !uncertain.some((one) => one.id === id))
  const tooLate = done.reduce((sum, one) => sum + one.tooLate, 0)
  trial.report({
    scenario: `${done.length} pauses of 10 to 23 s, ${done.filter((one) => one.isInTransaction).length} in a transaction`,
    guarantee: `the others answer within ${worstMsMax} ms; the node answers 2xx, 4xx or 503, and sends nothing whose lease is over`,
    figures: {
      'calls of the others': ofOthers.length,
      'their worst ms': worstMs,
      'their answers': countStatuses(ofOthers),
      'worst ms otherwise': slowestMs(load.calls.filter((call) => isApart(done, call))),
      'all answers': countStatuses(load.calls),
      messages: messages.handed.length,
      'of unknown fate': uncertain.length,
      'sent twice': [...handedCount.values()].filter((count) => count > 1).length,
    },
    violations: [
      ...violationUnless(ofOthers.length > done.length, 'the others were hardly called'),
      ...violationUnless(worstMs <= worstMsMax, `a call at another node took ${worstMs} ms`),
      // Those that waited for the paused node's locks.
      ...violationUnless(
        refused.length <= ofOthers.length / 10,
        `the others refused ${refused.length} of ${ofOthers.length} calls`,
      ),
      ...violationUnless(unexpected.length === 0, `unexpected answers: ${countStatuses(unexpected)}`),
      ...violationUnless(tooLate === 0, `${tooLate} messages were sent after their lease`),
      ...violationUnless(missing.length === 0, `${missing.length} acknowledged messages were never sent`),
      ...violationUnless(
        done.some((one) => one.isInTransaction),
        'no node was paused in a transaction',
      ),
    ],
  })
}

/** Whether a call was not under way during any pause. */
const isApart = (done: readonly Pause[], { startedAt, ms }: NodeCall) =>
  done.every(({ from, until }) => startedAt > until || startedAt + ms < from)
