import { createProcessClock } from '../../helpers/process-clock.ts'
import { logIn, type TestApp, type WebhookClient } from '../../helpers/webhook-client.ts'
import { callApi, newPhone, send, verify, violationUnless, type CallResult } from '../calls.ts'
import type { Trial } from '../family.ts'
import { account } from '../server.ts'
import { startCluster, defineNodeFamily, type Cluster, type ClusterOptions } from './cluster.ts'
import { startMessageServer } from './message-server.ts'
import { watchWindow } from './window.ts'

const limit = 5
const skewsMs = [-5_000, 0, 5_000]

export const contracts = defineNodeFamily({
  name: 'nodes-contracts',
  description: 'limits and single use over three nodes behind HAProxy, whose clocks are 5 s apart',
  counts: { 'node-rounds': { full: 50, short: 4 }, 'node-window-seconds': { full: 130, short: 0 } },
  async run(trial) {
    const clocks = skewsMs.map(() => createProcessClock(trial.folder))
    for (const [i, clock] of clocks.entries()) clock.setTimeOfDay(skewsMs[i] ?? 0)
    try {
      await checkContracts(trial, 'three nodes at −5, 0 and +5 s', {
        nodeEnv: (i) => clocks[i]?.env ?? {},
      })
    } finally {
      for (const clock of clocks) clock.close()
    }
  },
})

type Bench = { cluster: Cluster; client: WebhookClient; smallClient: WebhookClient }

type Round = (bench: Bench) => Promise<string[]>

/** Checks on a new cluster that every limit and every single use holds over all nodes. */
export async function checkContracts(trial: Trial, where: string, options: ClusterOptions): Promise<void> {
  const messages = startMessageServer()
  const cluster = await startCluster(trial, {
    ...options,
    rates: { projects: limit, applications: limit, sendPerMinute: limit },
    env: { OTPD_PHONE_SEND_BUDGET: 'enforce', ...messages.env, ...options.env },
    toml: (i) => `[plans.large]\nprojects = 1000000\napplications = 1000000\n${messages.toml(i)}`,
  })
  try {
    const bench = await createBench(cluster)
    const seconds = trial.count('node-window-seconds')
    const window = seconds > 0 ? watchWindow(trial, bench, seconds) : undefined
    const rounds = trial.count('node-rounds')
    for (const [promise, round] of Object.entries(roundsByPromise)) {
      const violations: string[] = []
      const startedAt = performance.now()
      for (let i = 0; i < rounds; i++) violations.push(...(await round(bench)))
      const ms = Math.round((performance.now() - startedAt) / Math.max(1, rounds))
      trial.report({
        scenario: `${rounds} rounds, ${where}`,
        guarantee: promise,
        figures: { 'ms a round': ms },
        violations,
      })
    }
    await window
  } finally {
    await cluster.stop()
    messages.stop()
  }
}

const smallAccount = { username: 'bob@example.com', password: account.password }

async function createBench(cluster: Cluster): Promise<Bench> {
  const [node] = cluster.nodes
  const { username, password } = smallAccount
  await node?.runHostCommand(['admin', 'create', '--email', username, '--password-stdin'], password)
  await node?.runHostCommand(['admin', 'set-plan', account.email, 'large'])
  return {
    cluster,
    client: await logIn(cluster.url),
    smallClient: await logIn(cluster.url, smallAccount),
  }
}

/** Makes the calls at once; the balancer gives each to the next node. */
const atOnce = <T>(count: number, call: (i: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, i) => call(i)))

/**
 * Compares the answers with the expected numbers of `status` or `status code`. A machine that is too slow for the rounds gets
 * answers 503 instead of others: then the numbers are the most that may come.
 */
function expectAnswers(answers: readonly CallResult[], expected: Record<string, number>): string[] {
  const seen: Record<string, number> = {}
  for (const { status, error } of answers) {
    const code = error['code'] === undefined ? String(status) : `${status} ${String(error['code'])}`
    seen[code] = (seen[code] ?? 0) + 1
  }
  const unavailable = seen[unavailableAnswer] ?? 0
  const isMet = Object.entries(seen).every(
    ([answer, count]) =>
      answer === unavailableAnswer ||
      (count <= (expected[answer] ?? 0) && count >= (expected[answer] ?? 0) - unavailable),
  )
  const toText = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([answer, count]) => `${count} × ${answer}`)
      .join(', ')
  return violationUnless(isMet, `expected ${toText(expected)}; came ${toText(seen)}`)
}

const unavailableAnswer = '503 UNAVAILABLE'

const wrongCode = (code: unknown) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

const withKey = ({ headers }: TestApp, key: string) => ({ headers: { ...headers, 'idempotency-key': key } })

const roundsByPromise: Record<string, Round> = {
  async 'of 50 sends at once under a limit of 5 a minute, 5 are admitted'({ cluster, client }) {
    const app = await client.createApplication()
    const answers = await atOnce(50, () => send(cluster.url, app))
    return expectAnswers(answers, { '201': limit, '429 RATE_LIMITED': 50 - limit })
  },

  async 'a right code is verified once'({ cluster, client }) {
    const app = await client.createApplication()
    const { data } = await send(cluster.url, app)
    const answers = await atOnce(12, () => verify(cluster.url, app, data['requestId'], data['code']))
    return expectAnswers(answers, { '200': 1, '409 ALREADY_VERIFIED': 11 })
  },

  async 'five wrong codes are the last: the right one is refused too'({ cluster, client }) {
    const app = await client.createApplication()
    const { data } = await send(cluster.url, app)
    const check = (code: unknown) => verify(cluster.url, app, data['requestId'], code)
    const answers = await atOnce(24, () => check(wrongCode(data['code'])))
    const right = await check(data['code'])
    return [
      ...expectAnswers(answers, { '400 INVALID_CODE': 5, '410 ATTEMPTS_EXHAUSTED': 19 }),
      ...expectAnswers([right], { '410 ATTEMPTS_EXHAUSTED': 1 }),
    ]
  },

  async 'a phone gets 5 messages, over four applications'({ cluster, client }) {
    const phone = newPhone()
    const apps = await atOnce(4, () => client.createApplication('Phone', 'live'))
    const answers = await atOnce(24, (i) => send(cluster.url, apps[i % 4] ?? { headers: {} }, phone))
    return expectAnswers(answers, { '201': 5, '429 RATE_LIMITED': 19 })
  },

  async 'one idempotency key, given to three nodes at once, is one request'({ cluster, client }) {
    const app = await client.createApplication()
    const phone = newPhone()
    const key = crypto.randomUUID()
    const calls = cluster.nodes.flatMap(({ url }) => [url, url])
    const answers = await Promise.all(calls.map((url) => send(url, withKey(app, key), phone)))
    const later = await Promise.all(cluster.nodes.map(({ url }) => send(url, withKey(app, key), phone)))
    const inProgress = answers.filter(({ error }) => error['code'] === 'CONFLICT')
    const answered = [...answers.filter((answer) => !inProgress.includes(answer)), ...later]
    const ids = new Set(answered.map(({ data }) => data['requestId']))
    const [stored] = await cluster.postgres.query<{ count: number }>(
      'select count(*)::int as count from otp_requests where app_id = $1',
      'otpd',
      [app.id],
    )
    return [
      ...expectAnswers(answered, { '201': answered.length }),
      ...violationUnless(ids.size === 1, `one key gave ${ids.size} requests`),
      ...violationUnless(stored?.count === 1, `one key stored ${stored?.count} requests`),
    ]
  },

  async 'of 15 projects created at once under a limit of 5, 5 are'({ cluster, smallClient }) {
    const headers = { authorization: `Bearer ${smallClient.token}` }
    const create = (i: number) =>
      callApi('POST', `${cluster.url}/v1/projects`, { headers, body: { name: `p${i}` } })
    const answers = await atOnce(15, create)
    const created = answers.filter(({ status }) => status === 201)
    for (const { data } of created) await smallClient.call('DELETE', `/v1/projects/${String(data['id'])}`)
    return expectAnswers(answers, { '201': limit, '403 PLAN_LIMIT_REACHED': 15 - limit })
  },

  async 'of 15 applications created at once under a limit of 5, 5 are'({ cluster, smallClient }) {
    const headers = { authorization: `Bearer ${smallClient.token}` }
    const project = await smallClient.call<{ id: string }>('POST', '/v1/projects', { name: 'apps' })
    const body = { name: 'app', projectId: project.id, environment: 'test' }
    const answers = await atOnce(15, () =>
      callApi('POST', `${cluster.url}/v1/applications`, { headers, body }),
    )
    for (const { status, data } of answers)
      if (status === 201) await smallClient.call('DELETE', `/v1/applications/${String(data['id'])}`)
    await smallClient.call('DELETE', `/v1/projects/${project.id}`)
    return expectAnswers(answers, { '201': limit, '403 PLAN_LIMIT_REACHED': 15 - limit })
  },

  async 'a secret that was rotated at one node is refused on the next call at another'({ cluster, client }) {
    const app = await client.createApplication()
    const violations: string[] = []
    for (const [i, node] of cluster.nodes.entries()) {
      const other = cluster.nodes[(i + 1) % cluster.nodes.length]?.url ?? ''
      // The other node has just accepted it.
      violations.push(...expectAnswers([await send(other, app)], { '201': 1 }))
      const { value } = await client.callAt<{ value: string }>(
        node.url,
        'POST',
        `/v1/applications/${app.id}/rotate/secret`,
      )
      violations.push(...expectAnswers([await send(other, app)], { '401 UNAUTHENTICATED': 1 }))
      app.headers['x-client-secret'] = value
    }
    return violations
  },

  async "times of three nodes are the database's"({ cluster, client }) {
    const app = await client.createApplication()
    const answers = await Promise.all(cluster.nodes.map(({ url }) => send(url, app)))
    const times = answers.map(({ data }) => Date.parse(String(data['expiresAt'])))
    const apartMs = Math.max(...times) - Math.min(...times)
    return violationUnless(apartMs < 2_500, `codes of one moment expire ${apartMs} ms apart`)
  },
}
